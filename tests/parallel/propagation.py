"""Sharding propagation: over which axes of meshes, where the compiler may choose, results and free arguments are.

A row of the tables is `mesh; expression; arguments`, each of them a shape and, but for free ones, how it is spread.
"""

from __future__ import annotations

from .random_programs import PROGRAMS

SETUP = """
U = P.UNCONSTRAINED
def on(mesh):
    return (lambda *e: NamedSharding(mesh, P(*e)),
            lambda x, *e: lax.with_sharding_constraint(x, NamedSharding(mesh, P(*e))))
def place(s):
    return type(s).__name__, str(getattr(s, 'spec', None))
def told(f, **args):
    given = [jnp.ones(a) if not a or isinstance(a[0], int) else jax.device_put(
        np.ones(a[0], 'int32' if k == 'i' else 'float32'), N(*a[1:])) for k, a in args.items()]
    code = jax.jit(f).lower(*given).compile()
    return [[place(s) for s in jax.tree.leaves(told)] for told in (code.output_shardings, code.input_shardings)]
"""

# axes that could go to several dimensions
CONFLICTS = [
    "m42; u+v; u=((8,8),'a',None), v=((8,8),None,'a')", "m42; u+v; u=((8,8),'b',None), v=((8,8),None,('a','b'))",
    "m42; u+v; u=((8,8),('a','b'),None), v=((8,8),'a','b')",
    "m42; u+v+w; u=((8,8),'a'), v=((8,8),None,'a'), w=((8,8),None,'a')",
    "m42; u@v; u=((8,8),'b',None), v=((8,16),None,'b')", "m42; u@v; u=((8,8),'a',None), v=((8,8),None,('b','a'))",
    "m42; u@v; u=((8,8),('a','b'),None), v=((8,8),None,'a')", "m42; u+v[:,None]; u=((8,),'a'), v=((8,),'a')",
    "m42; v+u; u=((8,8),'a'), v=((8,),'a')", "m8; u.reshape(4,16); u=((64,),'i')", "m42; u[:2]; u=((8,),('a','b'))",
    "m42; u[:6]; u=((8,),('b','a'))", "m42; jnp.fft.fft(u,axis=0); u=((8,),'a')",
    "m42; u@v; u=((16,8),'a',None), v=((8,8),None,('a','b'))", "m42; u@v; u=((8,8),'a','b'), v=((8,8),'b','a')",
    "m42; jnp.einsum('ij,kj->ki',u,v); u=((8,8),'a',None), v=((8,8),'a')",
    "m222; u+v; u=((8,8),'x',None), v=((8,8),None,('y','x'))",
    "m222; u+v; u=((8,8),('x','z'),None), v=((8,8),None,('y','z','x'))",
    "m222; lax.clamp(u,v,w); u=((8,8),'x'), v=((8,8),None,'x'), w=((8,8),None,('x','y'))",
    "m222; lax.clamp(u,v,w); u=((8,8),('y','x')), v=((8,8),'x',None), w=((8,8),'x')",
]

# batched contractions, updates of parts
CONTRACTIONS = [
    "m42; u@v; u=((8,8,8),'a'), v=((8,8,8),None,None,('a','b'))", "m42; u@v; v=((8,8,8),'a'), u=((8,8,8),None,'a')",
    "m42; u@v; v=((8,8,16),'b'), u=((8,8,8),None,'b')", "m42; u+v; u=((8,1),'a'), v=((1,8),None,'a')",
    "m42; lax.dynamic_update_slice(u,v,(0,0)); u=((8,8),None,'a'), v=((4,8),'a')",
    "m42; jnp.concatenate([u,v]); u=((8,8),'a'), v=((16,8),None,'a')",
    "m42; jnp.concatenate([u,v]); u=((8,8),), v=((8,8),'a')",
    "m42; u@v+w; u=((8,8),'a'), v=((8,8),None,'a'), w=((8,8),'b')",
]

# which operations are followed first
ORDERS = [
    "m42; (w:=jnp.broadcast_to(v,(8,16))*2, jnp.concatenate([w, k],0)); v=((16,),'a'), k=((8,16),None,'b')",
    "m42; (w:=jnp.broadcast_to(v,(8,16))*2, k@w); v=((16,),'a'), k=((16,8),'a',None)",
    "m42; (u:=v*2, w:=jnp.broadcast_to(u,(8,16)), jnp.concatenate([u,l]),w+k); v=((16,),), k=((8,16),None,'b'), "
    "l=((16,),'a')",
    "m42; (w:=jnp.broadcast_to(v,(4,16))*2, wsc(w.max(0),'b')); v=((16,),'a')",
    "m42; (w:=u@v, wsc(w.max(0),'b'), jnp.concatenate([w,w])); u=((4,16),None,None), v=((16,16),None,'a')",
    "m42; (w:=u[:,:8]*2, w@v); u=((4,16),None,'a'), v=((8,16),'b')",
    "m42; lax.dynamic_slice_in_dim(u,jnp.argmax(u[0]),8,0); u=((16,16),'a','b')",
    "m42; (w:=jnp.broadcast_to(v,(8,16))*2, wsc(w[:,::2],None,'b')); v=((16,),'a')",
    "m42; (u@v)[::2]+w; u=((8,8),'a'), v=((8,8),), w=((4,8),None,'b')",
    "m42; (w:=k*2, wsc(w[:,::-1],None,'b'), w@u); u=((8,8),'a'), k=((8,8),)",
    "m42; (w:=k*2, wsc(w[:,::-1],None,'a'), wsc(jnp.sort(w,1),None,'b')); u=((8,8),'a'), k=((8,8),)",
    "m42; lax.select(c>0,u,v); c=((8,8),), u=((8,8),'a'), v=((8,8),None,('a','b'))",
    "m42; lax.bitcast_convert_type(u,jnp.int32)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.erf(u)+v; u=((8,8),'a'), v=((8,8),'b')", "m42; jnp.sign(u)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; jnp.sqrt(u)+v; u=((8,8),'a'), v=((8,8),'b')", "m42; (u**v)+k; u=((8,8),'a'), v=((8,8),), k=((8,8),'b')",
    "m42; jnp.logaddexp(u,u)+k; u=((8,8),'a'), v=((8,8),), k=((8,8),'b')",
]

# what is followed before the rest, against what comes from the result
ROUNDS = [
    "m42; u[:,:8]+v; u=((8,16),'a'), v=((8,8),'b')", "m42; jnp.concatenate([u,u],1)+v; u=((8,8),'a'), v=((8,16),'b')",
    "m42; jnp.sort(u,0)+v; u=((8,8),'a'), v=((8,8),'b')", "m42; jnp.cumsum(u,1)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.dynamic_slice_in_dim(u,jnp.argmax(u[0]),4,1)+v; u=((8,8),'a'), v=((8,4),'b')",
    "m42; u.at[:,jnp.array([1,0])].add(1.)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; jnp.broadcast_to(u,(8,8))+v; u=((8,),'a'), v=((8,8),None,'b')",
    "m42; lax.top_k(u,2)[0]+v; u=((8,8),'a'), v=((8,2),'b')",
    "m42; lax.fori_loop(0,3,lambda i,c:c*2,u)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.cond(u[0,0]>0,lambda u:u*2,lambda u:u,u)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.reduce_window(u,0.,lax.add,(2,1),(1,1),'SAME')+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; jnp.where(u>0,u,0)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; jnp.stack([u,u])+v; u=((8,8),'a'), v=((2,8,8),None,'b')",
    "m42; jnp.take(u,jnp.argsort(u[0]),1)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; jax.random.uniform(jax.random.key(0),(8,8))+v; v=((8,8),'b')",
    "m42; jax.jit(lambda u: u*2)(u)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; jnp.concatenate([u,k],0)+v; u=((8,8),'a'), v=((16,8),'b'), k=((8,8),)",
    "m42; lax.dynamic_update_slice_in_dim(k,u,i,1)+v; u=((8,4),'a'), v=((8,8),'b'), i=((),), k=((8,8),)",
    "m42; jnp.stack([u,k])+v; u=((8,8),'a'), v=((2,8,8),None,'b'), k=((8,8),)",
    "m42; lax.gather(k,i[:,None],lax.GatherDimensionNumbers((0,),(1,),(1,)),(8,1))+v; k=((8,8),'a'), "
    "v=((8,4),'b'), i=((4,),)",
]

# values that several operations read
READERS = [
    "m42; lax.mul(u,u)+v; u=((8,8),'a'), v=((8,8),'b')", "m42; v+lax.mul(u,u); u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.mul(u,u)-lax.mul(v,v); u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.mul(lax.sqrt(u),lax.exp(u))+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; (t:=lax.sqrt(u), (lax.exp(t)+v).sum(0), t.sum(0))[1:]; u=((8,8),None,'a'), v=((8,8),None,'b')",
    "m42; ((u@w)+v, u+1); u=((8,8),'a'), v=((8,8),), w=((8,8),None,'b')",
    "m42; (t:=u[:,::2], wsc(t[:,::2],None,'b'), u+1)[1:]; u=((8,8),None,'a')",
    "m42; (t:=u[::2], jnp.concatenate([t,v])); u=((8,8),None,'a'), v=((4,8),None,'b')",
    "m42; (u+v, u*2); u=((8,8),None,'a'), v=((8,8),None,'b')", "m42; (u+v, v.T,u*2); u=((8,8),'a'), v=((8,8),None,'a')",
    "m42; (u+v, u); u=((8,8),'a'), v=((8,8),None,'a')", "m42; (jnp.sin(u)+v, u); u=((8,8),'a'), v=((8,8),'b')",
    "m42; (lax.fori_loop(0,3,lambda i,c:c*2,u)+v,u*2); u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.fori_loop(0,3,lambda i,c:c*u,k*2)+v; u=((8,8),'a'), v=((8,8),'b'), k=((8,8),)",
    "m42; lax.cond(i>0,lambda u:u*2,lambda u:w*2,u); u=((8,8),'a'), i=((),), w=((8,8),None,'a')",
    "m42; lax.fori_loop(0,3,lambda i,c:c+w,u); u=((8,8),'a'), w=((8,8),None,'a')",
]

# sizes, windows, constants, which each reader has anew
SIZES = [
    "m42; lax.conv(u,k,(1,),'SAME'); u=((8,8,8),None,None,'a'), k=((4,8,3),)",
    "m42; lax.conv(u,k,(1,),'SAME'); u=((8,8,4),None,None,'b'), k=((4,8,5),)",
    "m42; lax.conv(u,k,(1,),'VALID'); u=((8,8,8),None,None,'b'), k=((4,8,1),)",
    "m42; lax.conv(u,k,(1,),'VALID'); u=((8,8,8),None,None,'b'), k=((4,8,5),)",
    "m42; lax.conv_general_dilated(u,k,(1,),'SAME',feature_group_count=2); u=((8,8,8),'a'), k=((8,4,3),'b')",
    "m42; lax.reduce_window(u,0.,lax.add,(8,),(1,),'VALID'); u=((8,),'b')", "m42; jnp.sort(u,1); u=((8,2),None,'b')",
    "m42; lax.pad(u,0.,((0,0,0),(0,8,0))); u=((8,8),None,'a')", "m42; lax.iota(jnp.float32,8)+u; u=((8,),'a')",
    "m42; jnp.cumsum(jnp.ones(8))*u; u=((8,),'a')", "m42; [jnp.eye(8), jnp.zeros(8), u*2]; u=((8,8),'a','b')",
    "m42; [w:=jnp.sort(jnp.ones(8)), w+u]; u=((8,),'a')", "m42; [w:=jnp.ones((16,))[:8], w+u]; u=((8,),'a')",
    "m42; [w:=jnp.array([1.,2,3,4])[::2], w+u]; u=((2,),'b')",
]

# constraints
CONSTRAINTS = [
    "m42; (w:=lax.max(u,u), wsc(w,U,('a','b')), lax.exp(w)); u=((8,8),('b','a'),None)",
    "m42; (w:=lax.exp(u), u+1, wsc(w,U,('a','b')), lax.exp(w)); u=((8,8),('b','a'),None)",
    "m42; (w:=lax.exp(u), u+1, wsc(w,U,'a')); u=((8,8),('b','a'),None)",
    "m42; (w:=lax.exp(u), wsc(w,U,'a')); u=((8,8),'a')", "m42; (w:=lax.exp(u), u+1, wsc(w,U,'b'), w*2); u=((8,8),'b')",
    "m42; (w:=lax.exp(u), u+1, w.T+v,w*2); u=((8,8),'b'), v=((8,8),'b')",
    "m42; (w:=lax.exp(u), u+1, wsc(w,U,'b'), wsc(w,'b',U)); u=((8,8),)",
    "m42; (w:=lax.exp(u), wsc(w,'b',None), wsc(w,None,'b')); u=((8,8),)",
    "m42; (w:=lax.exp(u), wsc(w,'a',None), wsc(w,'a',None)); u=((8,8),'b')",
    "m42; (w:=lax.exp(u), wsc(wsc(w,'a',None),None,'b')); u=((8,8),'b')",
    "m42; (w:=lax.exp(u), wsc(w.T,'a',None)); u=((8,8),'b')",
    "m42; (w:=jnp.concatenate([u,u]), wsc(w,None,'a')); u=((8,8),'b')", "m42; wsc(u.sum(0),'b')*2; u=((8,8),None,'a')",
    "m42; wsc(u+v,U,U); u=((8,8),'b','a'), v=((8,8),None,'a')",
    "m42; wsc(u+v,None)+u; u=((8,8),'b','a'), v=((8,8),None,'a')",
    "m42; lax.fori_loop(0,3,lambda i,c: wsc(c*2,None,'b'), u); u=((8,8),'a')",
]

# elementwise operations, of which some stand for several
ELEMENTWISE = [
    "m42; lax.abs(u)+v; u=((8,8),'a'), v=((8,8),'b')", "m42; lax.asin(u)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; lax.integer_pow(u,4)+v; u=((8,8),'a'), v=((8,8),'b')",
    "m42; (lax.pow(u,w))+v; u=((8,8),'a'), v=((8,8),'b'), w=((8,8),)",
    "m42; (lax.zeta(w,u))+v; u=((8,8),'a'), v=((8,8),'b'), w=((8,8),)",
    "m42; jnp.nan_to_num(u)+v; u=((8,8),'a'), v=((8,8),'b'), w=((8,8),), w2=((8,8),)",
]

# one operation at once
AT_ONCE = [
    'x[:4]', 'x[::2]', 'x[4:]', 'x[:]', 'x[:,:8]', 'x[:,4:8]', 'x[0]', 'x[:,0]', 'x[-1]', 'x[0,:4]', 'x[...,0]',
    'x[None]', 'x[:,None]', 'x[None,:4]', 'x[::-1]', 'x[:,::-1]', 'x[::-2]', 'x[i]', 'x[:,i]', 'x[i,i]',
    'x[i[:,None],i]', 'x[jnp.int32(1)]', 'x[1:7:2]', 'x[0:8]', 'x[0:8:1]', 'x.T', 'x.at[0].set(1.)',
    'jnp.take_along_axis(x,jnp.argsort(x,0),0)', 'jnp.pad(x,1)', 'jnp.where(x>0,x,0.)', 'jnp.tensordot(x,y,2)',
    'jnp.cumprod(x,0)', 'x.mean(1)', 'jnp.triu(x)', 'jnp.broadcast_to(x,(2,8,16))', 'jnp.fft.rfft(x)',
    'lax.dynamic_slice(x,(0,0),(4,16))', 'jnp.cross(x[:,:3],x[:,:3])', 'x.astype(jnp.int32)', '-x', 'jnp.array(x)',
    'jnp.full_like(x,2.)', 'jnp.block([[x,x]])', 'jnp.ptp(x,0)', 'jnp.partition(x,2)', 'x.mT',
    'lax.fori_loop(0,2,lambda i,c:c*2,x)', 'lax.select(x>0,x,y)',
]

AT_ONCE_SETUP = """
N, wsc = on(m42)
x = jax.device_put(np.arange(128, dtype='float32').reshape(8, 16), N('a', 'b'))
y = jax.device_put(np.arange(128, dtype='float32').reshape(8, 16), N(None, ('a', 'b')))
i = jnp.array([0, 1])
at = lambda tree: [(place(z.sharding), z.committed) for z in jax.tree.leaves(tree)]
"""

NETWORKS_SETUP = AT_ONCE_SETUP + """
r = lambda *s: np.ones(s, 'float32')
put = lambda x, *e: jax.device_put(x, N(*e))
z, v = put(r(8, 8), 'a', 'b'), put(r(8), 'a')
def loss(p, xs, ys):
    h = jax.nn.relu(xs @ p['w1'] + p['b1'])
    return ((h @ p['w2'] + p['b2'] - ys)**2).mean()
def step(p, xs, ys):
    l, g = jax.value_and_grad(loss)(p, xs, ys)
    return l, jax.tree.map(lambda p, g: p - .1 * g, p, g)
def parameters(w1, b1, w2, b2):
    return dict(w1=put(r(8, 16), *w1), b1=put(r(16), *b1), w2=put(r(16, 4), *w2), b2=put(r(4), *b2))
def attention(q, k, v):
    s = jnp.einsum('bqhd,bkhd->bhqk', q, k)
    return jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s), v)
def norm(z, g):
    return (z - z.mean(-1, keepdims=True)) * lax.rsqrt(z.var(-1, keepdims=True) + 1e-5) * g
seen = []
look = lambda z: jax.debug.inspect_array_sharding(z, callback=lambda s: seen.append(place(s)))
"""

_SPREAD = ("(), (), (), ()", "(None, 'b'), ('b',), ('b', None), ()", "('a',), ('a',), ('a',), ('a',)",
           "('a', 'b'), ('b',), ('b', 'a'), ('a',)")
NETWORKS = [
    *(f"at(jax.jit(step)(parameters({p}), put(r(16, 8), 'a'), put(r(16, 4), 'a')))" for p in _SPREAD),
    f"at(jax.jit(step)(parameters({_SPREAD[1]}), put(r(16, 8), ('a', 'b')), put(r(16, 4), ('a', 'b'))))",
    f"at(jax.jit(step)(parameters({_SPREAD[3]}), r(16, 8), r(16, 4)))",
    f"at(jax.jit(lambda p, xs, ys: lax.scan(lambda p, _: step(p, xs, ys)[::-1], p, None, length=2))(parameters("
    f"{_SPREAD[3]}), put(r(16, 8), 'a'), put(r(16, 4), 'a')))",
    "q = put(r(8, 8, 8, 4), None, 'a', 'b')\nat(jax.jit(jax.value_and_grad(lambda q: attention(q, q, q).sum()))(q))",
    "at(jax.jit(jax.grad(lambda z, g: norm(z, g).sum(), (0, 1)))(z, put(r(8), 'b')))",
    "at(jax.jit(jax.grad(lambda t, i: t[i].sum()))(put(r(16, 8), None, 'b'), put(np.ones((8, 4), int), 'a')))",
    "at(jax.jit(jax.grad(lambda l, t: -jnp.take_along_axis(jax.nn.log_softmax(l), t[:, None], 1).mean()))(z, "
    "put(np.ones(8, int), 'a')))",
    "at(jax.jit(jax.grad(lambda i, k: lax.conv_general_dilated(i, k, (1, 1), 'SAME', dimension_numbers=('NHWC', "
    "'HWIO', 'NHWC')).sum(), (0, 1)))(put(r(8, 8, 8, 4), 'a', 'b'), put(r(3, 3, 4, 8), None, None, None, 'b')))",
    "at(jax.jit(lambda i: lax.reduce_window(i, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID'))(put(r(8, 8, 8, "
    "4), 'a', 'b')))",
    "at(jax.jit(jax.grad(lambda w, z: lax.scan(lambda c, t: (jnp.tanh(c @ w + t), c), jnp.zeros((8, 8)), z)[0].sum()))("
    "put(r(8, 8), None, 'b'), put(r(4, 8, 8), None, 'a')))",
    "at(jax.jit(lambda z: jax.jit(lambda w: w * 2, in_shardings=N('b'), out_shardings=N(None, 'b'))(z) + 1)(z))",
    "at(jax.jit(lambda z: jax.jit(lambda w: w.T, in_shardings=N('b'))(z))(z))",
    "at(jax.jit(lambda z: (z * 2, z.T @ z), out_shardings=(N(None, 'a'), None))(r(8, 8)))",
    "at(jax.jit(lambda z: (z * 2, z.T), in_shardings=N('b', None))(r(8, 8)))",
    "at(jax.jit(lambda w: w @ z)(r(8, 8)))",
    "at(jax.jit(lambda w: (jnp.linalg.cholesky(w @ w.mT + 9 * jnp.eye(4)), jnp.linalg.eigh(w @ w.mT), jnp.linalg.solve("
    "w + 9 * jnp.eye(4), w), jnp.linalg.qr(w)))(put(r(8, 4, 4), 'a')))",
    "at(jax.jit(lambda w: lax.while_loop(lambda c: c.sum() < 9, lambda c: c @ w, jnp.eye(8)))(z))",
    "at(jax.jit(lambda w: jax.shard_map(lambda w: lax.psum(w, 'b'), mesh=m42, in_specs=P('a', 'b'), out_specs=P('a'))("
    "w * 2).T)(z))",
    "at(jax.jit(lambda w, u: (w * 2, u * 2, w @ u))(jax.device_put(r(8, 8), S8), put(r(8, 8), None, 'b')))",
    "at(jax.jit(lambda w: (wsc(w * 2, 'b'), w.T)[1])(r(8, 8)))",
    "f = jax.jit(lambda w: (look(w), look(w.T), look(w.sum(0)), w)[3])\nf(z), f(z)\nseen",
    "jax.jit(lambda w: lax.scan(lambda c, t: (look(c), (c * 2, t))[1], w, None, length=2)[0])(z)\nseen",
    "jax.jit(lambda w: (look(w @ w), look(wsc(w, None, 'b')), w)[2])(z)\nseen",
    "jax.vmap(jax.grad(jax.jit(lambda w: (look(w), (w**2).sum())[1])))(z)\nseen",
    "jax.jit(lambda w: (look(w), w)[1])(r(3))\nseen",
]


def _row(text: str) -> str:
    mesh, expression, arguments = text.split("; ")
    names = ", ".join(part.split("=")[0] for part in arguments.split(", ") if "=" in part)
    return f"{SETUP}N, wsc = on({mesh})\ntold(lambda {names}: {expression}, {arguments})"


def _program(text: str) -> str:
    first, *lines = text.splitlines()
    mesh, arguments, results = first.split("; ")
    names = ", ".join(part.split("=")[0] for part in arguments.split(", ") if "=" in part)
    return "\n".join([f"{SETUP}N, wsc = on({mesh})", f"def f({names}):", *lines, f"    return {results}",
                      f"told(f, {arguments})"])


ROWS = {
    "propagation": [_row(text) for text in (*CONFLICTS, *CONTRACTIONS, *ORDERS, *ROUNDS, *READERS, *SIZES, *CONSTRAINTS,
                                            *ELEMENTWISE)],
    "random programs": [_program(text) for text in PROGRAMS],
    "spread at once": [f"{SETUP}{AT_ONCE_SETUP}at({text})" for text in AT_ONCE],
    "networks": [f"{SETUP}{NETWORKS_SETUP}{text}" for text in NETWORKS],
}
