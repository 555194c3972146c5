/* The C interface of XLA's foreign functions, version 0.3: declarations that agree with XLA's own header in names and
   layout, for machines where that is not installed. `styrax.ffi.call_frames` fills and serves these structures. */
#ifndef XLA_FFI_API_C_API_H_
#define XLA_FFI_API_C_API_H_

#include <stddef.h>
#include <stdint.h>

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 3

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { XLA_FFI_Extension_Metadata = 1 } XLA_FFI_Extension_Type;
typedef struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  struct XLA_FFI_Extension_Base* next;
} XLA_FFI_Extension_Base;

typedef struct XLA_FFI_Api XLA_FFI_Api;
typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_Future XLA_FFI_Future;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_InternalApi XLA_FFI_InternalApi;

/* Every structure begins with its size and a list of extensions. */
#define STYRAX_STRUCT(name, fields) \
  typedef struct name { size_t struct_size; XLA_FFI_Extension_Base* extension_start; fields } name

typedef enum {
  XLA_FFI_Error_Code_OK, XLA_FFI_Error_Code_CANCELLED, XLA_FFI_Error_Code_UNKNOWN, XLA_FFI_Error_Code_INVALID_ARGUMENT,
  XLA_FFI_Error_Code_DEADLINE_EXCEEDED, XLA_FFI_Error_Code_NOT_FOUND, XLA_FFI_Error_Code_ALREADY_EXISTS,
  XLA_FFI_Error_Code_PERMISSION_DENIED, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, XLA_FFI_Error_Code_FAILED_PRECONDITION,
  XLA_FFI_Error_Code_ABORTED, XLA_FFI_Error_Code_OUT_OF_RANGE, XLA_FFI_Error_Code_UNIMPLEMENTED,
  XLA_FFI_Error_Code_INTERNAL, XLA_FFI_Error_Code_UNAVAILABLE, XLA_FFI_Error_Code_DATA_LOSS,
  XLA_FFI_Error_Code_UNAUTHENTICATED
} XLA_FFI_Error_Code;

typedef enum {
  XLA_FFI_DataType_INVALID = 0, XLA_FFI_DataType_PRED = 1, XLA_FFI_DataType_S8 = 2, XLA_FFI_DataType_S16 = 3,
  XLA_FFI_DataType_S32 = 4, XLA_FFI_DataType_S64 = 5, XLA_FFI_DataType_U8 = 6, XLA_FFI_DataType_U16 = 7,
  XLA_FFI_DataType_U32 = 8, XLA_FFI_DataType_U64 = 9, XLA_FFI_DataType_F16 = 10, XLA_FFI_DataType_F32 = 11,
  XLA_FFI_DataType_F64 = 12, XLA_FFI_DataType_C64 = 15, XLA_FFI_DataType_BF16 = 16, XLA_FFI_DataType_TOKEN = 17,
  XLA_FFI_DataType_C128 = 18, XLA_FFI_DataType_F8E5M2 = 19, XLA_FFI_DataType_F8E4M3FN = 20, XLA_FFI_DataType_S4 = 21,
  XLA_FFI_DataType_U4 = 22, XLA_FFI_DataType_F8E4M3B11FNUZ = 23, XLA_FFI_DataType_F8E5M2FNUZ = 24,
  XLA_FFI_DataType_F8E4M3FNUZ = 25, XLA_FFI_DataType_S2 = 26, XLA_FFI_DataType_U2 = 27, XLA_FFI_DataType_F8E4M3 = 28,
  XLA_FFI_DataType_F8E3M4 = 29, XLA_FFI_DataType_S1 = 30, XLA_FFI_DataType_U1 = 31, XLA_FFI_DataType_F4E2M1FN = 32,
  XLA_FFI_DataType_F8E8M0FNU = 33
} XLA_FFI_DataType;

typedef enum {
  XLA_FFI_ExecutionStage_INSTANTIATE, XLA_FFI_ExecutionStage_PREPARE, XLA_FFI_ExecutionStage_INITIALIZE,
  XLA_FFI_ExecutionStage_EXECUTE
} XLA_FFI_ExecutionStage;
typedef enum { XLA_FFI_ArgType_BUFFER = 1 } XLA_FFI_ArgType;
typedef enum { XLA_FFI_RetType_BUFFER = 1 } XLA_FFI_RetType;
typedef enum {
  XLA_FFI_AttrType_ARRAY = 1, XLA_FFI_AttrType_DICTIONARY, XLA_FFI_AttrType_SCALAR, XLA_FFI_AttrType_STRING
} XLA_FFI_AttrType;

typedef struct XLA_FFI_ByteSpan { const char* ptr; size_t len; } XLA_FFI_ByteSpan;
typedef struct XLA_FFI_Scalar { XLA_FFI_DataType dtype; void* value; } XLA_FFI_Scalar;
typedef struct XLA_FFI_Array { XLA_FFI_DataType dtype; size_t size; void* data; } XLA_FFI_Array;
typedef struct XLA_FFI_TypeId { int64_t type_id; } XLA_FFI_TypeId;

STYRAX_STRUCT(XLA_FFI_Api_Version, int major_version; int minor_version;);
STYRAX_STRUCT(XLA_FFI_TypeInfo, void (*deleter)(void* object););
STYRAX_STRUCT(XLA_FFI_Buffer, XLA_FFI_DataType dtype; void* data; int64_t rank; int64_t* dims;);
STYRAX_STRUCT(XLA_FFI_Args, int64_t size; XLA_FFI_ArgType* types; void** args;);
STYRAX_STRUCT(XLA_FFI_Rets, int64_t size; XLA_FFI_RetType* types; void** rets;);
STYRAX_STRUCT(XLA_FFI_Attrs, int64_t size; XLA_FFI_AttrType* types; XLA_FFI_ByteSpan** names; void** attrs;);
STYRAX_STRUCT(XLA_FFI_CallFrame, const XLA_FFI_Api* api; XLA_FFI_ExecutionContext* ctx; XLA_FFI_ExecutionStage stage;
              XLA_FFI_Args args; XLA_FFI_Rets rets; XLA_FFI_Attrs attrs; XLA_FFI_Future* future;);

typedef XLA_FFI_Error* XLA_FFI_Handler(XLA_FFI_CallFrame* call_frame);
typedef struct XLA_FFI_Handler_Bundle {
  XLA_FFI_Handler* instantiate;
  XLA_FFI_Handler* prepare;
  XLA_FFI_Handler* initialize;
  XLA_FFI_Handler* execute;
} XLA_FFI_Handler_Bundle;
enum XLA_FFI_Handler_TraitsBits { XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1u << 0 };
typedef uint32_t XLA_FFI_Handler_Traits;
typedef void XLA_FFI_Task(void* data);

/* What a function may call: `name(name_Args*)`. */
#define STYRAX_FUNCTION(result, name, fields) \
  STYRAX_STRUCT(name##_Args, fields);         \
  typedef result name(name##_Args* args)

STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Error_Create, const char* message; XLA_FFI_Error_Code errc;);
STYRAX_FUNCTION(void, XLA_FFI_Error_GetMessage, XLA_FFI_Error* error; const char* message;);
STYRAX_FUNCTION(void, XLA_FFI_Error_Destroy, XLA_FFI_Error* error;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Handler_Register, XLA_FFI_ByteSpan name; XLA_FFI_ByteSpan platform;
                XLA_FFI_Handler_Bundle bundle; XLA_FFI_Handler_Traits traits;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Stream_Get, XLA_FFI_ExecutionContext* ctx; void* stream;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Type_Register, XLA_FFI_ByteSpan name; XLA_FFI_TypeId* type_id;
                const XLA_FFI_TypeInfo* type_info;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_ExecutionContext_Get, XLA_FFI_ExecutionContext* ctx; XLA_FFI_TypeId* type_id;
                void* data;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_State_Set, XLA_FFI_ExecutionContext* ctx; XLA_FFI_ExecutionStage stage;
                XLA_FFI_TypeId* type_id; void* state;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_State_Get, XLA_FFI_ExecutionContext* ctx; XLA_FFI_ExecutionStage stage;
                XLA_FFI_TypeId* type_id; void* state;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_DeviceMemory_Allocate, XLA_FFI_ExecutionContext* ctx; size_t size;
                size_t alignment; void* data;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_DeviceMemory_Free, XLA_FFI_ExecutionContext* ctx; size_t size; void* data;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_ThreadPool_Schedule, XLA_FFI_ExecutionContext* ctx; XLA_FFI_Task* task;
                void* data;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_ThreadPool_NumThreads, XLA_FFI_ExecutionContext* ctx; int64_t* num_threads;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Future_Create, XLA_FFI_Future* future;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Future_SetAvailable, XLA_FFI_Future* future;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_Future_SetError, XLA_FFI_Future* future; XLA_FFI_Error* error;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_RunId_Get, XLA_FFI_ExecutionContext* ctx; int64_t run_id;);
STYRAX_FUNCTION(XLA_FFI_Error*, XLA_FFI_DeviceOrdinal_Get, XLA_FFI_ExecutionContext* ctx; int32_t device_ordinal;);

struct XLA_FFI_Api {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Api_Version api_version;
  const XLA_FFI_InternalApi* internal_api;
  XLA_FFI_Error_Create* XLA_FFI_Error_Create;
  XLA_FFI_Error_GetMessage* XLA_FFI_Error_GetMessage;
  XLA_FFI_Error_Destroy* XLA_FFI_Error_Destroy;
  XLA_FFI_Handler_Register* XLA_FFI_Handler_Register;
  XLA_FFI_Stream_Get* XLA_FFI_Stream_Get;
  XLA_FFI_Type_Register* XLA_FFI_Type_Register;
  XLA_FFI_ExecutionContext_Get* XLA_FFI_ExecutionContext_Get;
  XLA_FFI_State_Set* XLA_FFI_State_Set;
  XLA_FFI_State_Get* XLA_FFI_State_Get;
  XLA_FFI_DeviceMemory_Allocate* XLA_FFI_DeviceMemory_Allocate;
  XLA_FFI_DeviceMemory_Free* XLA_FFI_DeviceMemory_Free;
  XLA_FFI_ThreadPool_Schedule* XLA_FFI_ThreadPool_Schedule;
  XLA_FFI_ThreadPool_NumThreads* XLA_FFI_ThreadPool_NumThreads;
  XLA_FFI_Future_Create* XLA_FFI_Future_Create;
  XLA_FFI_Future_SetAvailable* XLA_FFI_Future_SetAvailable;
  XLA_FFI_Future_SetError* XLA_FFI_Future_SetError;
  XLA_FFI_RunId_Get* XLA_FFI_RunId_Get;
  XLA_FFI_DeviceOrdinal_Get* XLA_FFI_DeviceOrdinal_Get;
};

#undef STYRAX_FUNCTION
#undef STYRAX_STRUCT
#ifdef __cplusplus
}
#endif
#endif
