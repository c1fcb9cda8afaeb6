//! Functions of CUDA C++ text, in whose place Rust functions stand.

use super::*;

#[test]
fn raw_functions_need_stand_ins() {
    let mut k = kernel(1, 32);
    let (a, b) = (k.tensor("A", F32, 32), k.tensor("B", F32, 32));
    let source = Expr::string("__device__ float my_relu(float x) { return x > 0 ? x : 0; }");
    let args = vec![Expr::string("my_relu"), source, load(&a, k.tx())];
    let body = [k.store(&b, k.tx(), call(Op::CudaFuncCall, F32, args))];
    let (da, db) = (f32s((0..32).map(|i| i as f32 - 16.0)), zeros(32));
    let fault = k.run(body.clone(), &[&da, &db]).unwrap_err();
    expect(
        fault,
        FaultKind::StandIn,
        1,
        [0; 3],
        [0; 3],
        "give it a Rust function in its place, `device.stand_in(\"my_relu\", |a: f32| …)`",
    );

    let mut stand_ins = StandIns::new();
    stand_ins.register("my_relu", |call| Ok(call.f32(0).max(0.0).to_bits() as u64));
    let (Data::Tensor(x), Data::Tensor(y)) = (&da, &db) else {
        unreachable!()
    };
    let args = [x.address(), y.address()];
    k.run_with(
        body.clone(),
        &args,
        &memory_of(),
        &stand_ins,
        &LaunchOptions::default(),
    )
    .unwrap();
    assert!(
        db.f32()
            .iter()
            .enumerate()
            .all(|(i, v)| *v == (i as f32 - 16.0).max(0.0))
    );

    stand_ins.register("my_relu", |call| {
        if call.thread()[0] == 5 {
            Err("no five".to_string())
        } else {
            Ok(0)
        }
    });
    let fault = k
        .run_with(body, &args, &memory_of(), &stand_ins, &LaunchOptions::default())
        .unwrap_err();
    expect(
        fault,
        FaultKind::StandIn,
        1,
        [0; 3],
        [5, 0, 0],
        "`my_relu`: no five",
    );
}

#[test]
fn stand_ins_reach_memory_through_their_pointers() {
    let mut k = kernel(1, 32);
    let (a, b) = (k.tensor("A", F32, 32), k.tensor("B", F32, 32));
    let s = buffer("s", F32, 32, "shared");
    let pointer_call = |name: &str, pointer: Expr| {
        call(
            Op::CudaFuncCall,
            F32,
            vec![Expr::string(name), Expr::string(""), pointer],
        )
    };
    let body = [
        alloc(&s),
        k.store(&s, k.tx(), float(2.0)),
        k.store(
            &b,
            k.tx(),
            pointer_call("get", address(&a, k.tx())) + pointer_call("get", address(&s, k.tx())),
        ),
        k.store(&a, k.tx(), pointer_call("get", address(&a, k.tx() + int(1)))),
    ];
    let mut stand_ins = StandIns::new();
    stand_ins.register("get", |call| {
        let value = call.read::<4>(call.bits(0))?;
        Ok(u32::from_le_bytes(value) as u64)
    });
    let (da, db) = (f32s((0..32).map(|i| i as f32)), zeros(32));
    let (Data::Tensor(x), Data::Tensor(y)) = (&da, &db) else {
        unreachable!()
    };
    let fault = k
        .run_with(
            body,
            &[x.address(), y.address()],
            &memory_of(),
            &stand_ins,
            &LaunchOptions::default(),
        )
        .unwrap_err();
    expect(
        fault,
        FaultKind::StandIn,
        3,
        [0; 3],
        [31, 0, 0],
        "reads through `*pointer` bytes 128 to 129 of `A`, whose allocation has 128",
    );
    assert!(db.f32().iter().enumerate().all(|(i, v)| *v == i as f32 + 2.0));
}
