@T.prim_func
def coop(A: T.Buffer((8, 32), "int32")):
    T.func_attr({"tirx.use_cooperative_launch": True})
    T.device_entry(); b = T.cta_id([8]); tx = T.thread_id([32])
    T.attr({"tirx.use_programtic_dependent_launch": 1})
    T.cuda.grid_sync()
    A[b, tx] = 1
