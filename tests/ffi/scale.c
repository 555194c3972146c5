/* Foreign functions for the tests, written against the C interface alone. */
#include "xla/ffi/api/c_api.h"

static XLA_FFI_Error* failed(XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {sizeof args, 0, message, XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return frame->api->XLA_FFI_Error_Create(&args);
}

static long size_of(XLA_FFI_Buffer* buffer) {
  long n = 1;
  for (int i = 0; i < buffer->rank; i++) n *= buffer->dims[i];
  return n;
}

/* The first result is the first operand times the attribute `factor`. */
XLA_FFI_Error* scale(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Buffer* x = frame->args.args[0];
  XLA_FFI_Buffer* y = frame->rets.rets[0];
  float factor = 1;
  if (x->dtype != XLA_FFI_DataType_F32 || y->dtype != XLA_FFI_DataType_F32) return failed(frame, "not float32");
  for (int i = 0; i < frame->attrs.size; i++)
    if (frame->attrs.types[i] == XLA_FFI_AttrType_SCALAR) {
      XLA_FFI_Scalar* scalar = frame->attrs.attrs[i];
      if (scalar->dtype == XLA_FFI_DataType_F32) factor = *(float*)scalar->value;
    }
  if (factor < 0) return failed(frame, "negative factor");
  for (long i = 0; i < size_of(x); i++) ((float*)y->data)[i] = factor * ((float*)x->data)[i];
  return 0;
}

/* The number of attributes of each kind: arrays, dictionaries, scalars, strings; and bytes of text. */
XLA_FFI_Error* kinds(XLA_FFI_CallFrame* frame) {
  int* counts = ((XLA_FFI_Buffer*)frame->rets.rets[0])->data;
  for (int i = 0; i < 5; i++) counts[i] = 0;
  for (int i = 0; i < frame->attrs.size; i++) {
    counts[frame->attrs.types[i] - 1]++;
    if (frame->attrs.types[i] == XLA_FFI_AttrType_STRING) counts[4] = ((XLA_FFI_ByteSpan*)frame->attrs.attrs[i])->len;
  }
  return 0;
}

/* Adds one in place: the operand's memory is the result's. */
XLA_FFI_Error* increment(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Buffer* x = frame->args.args[0];
  XLA_FFI_Buffer* y = frame->rets.rets[0];
  if (x->data != y->data) return failed(frame, "not in place");
  for (long i = 0; i < size_of(y); i++) ((float*)y->data)[i] += 1;
  return 0;
}

/* State: made when the program is compiled, counted up by each call. */
static int state;
static XLA_FFI_TypeId state_type;
XLA_FFI_Error* make_state(XLA_FFI_CallFrame* frame) {
  state = 10;
  XLA_FFI_State_Set_Args args = {sizeof args, 0, frame->ctx, frame->stage, &state_type, &state};
  return frame->api->XLA_FFI_State_Set(&args);
}
XLA_FFI_Error* count(XLA_FFI_CallFrame* frame) {
  XLA_FFI_State_Get_Args args = {sizeof args, 0, frame->ctx, XLA_FFI_ExecutionStage_INSTANTIATE, &state_type, 0};
  XLA_FFI_Error* error = frame->api->XLA_FFI_State_Get(&args);
  if (error) return error;
  *(int*)((XLA_FFI_Buffer*)frame->rets.rets[0])->data = ++*(int*)args.state;
  return 0;
}

/* The older convention: plain addresses. */
void plain(void* out, const void** ins) {
  for (int i = 0; i < 3; i++) ((float*)out)[i] = 7 * ((const float*)ins[0])[i];
}
