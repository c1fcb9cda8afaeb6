//! Several devices that run a kernel together, on simulated devices or (`TIRX_TEST_DEVICE=cuda`) on the first two GPUs, or as two
//! ranks on the only one.

use tirx_rt::{Device, Symmetric, Tensor, World};

tirx_rt::include_kernels!();

/// The worlds of the test: simulated devices; or two GPUs, or two ranks on the only GPU.
fn worlds() -> Vec<World> {
    if std::env::var("TIRX_TEST_DEVICE").as_deref() != Ok("cuda") {
        return [1, 2, 3, 8].map(|ranks| World::simulated(ranks).unwrap()).into();
    }
    match Device::cuda_count() {
        0 | 1 => vec![World::on_one_gpu(0, 2).unwrap()],
        _ => vec![World::cuda(&[0, 1]).unwrap()],
    }
}

/// The arguments of `all_reduce`.
struct AllReduce {
    a: Symmetric<f32>,
    b: Symmetric<f32>,
    c: Vec<Tensor<f32>>,
    flags: Symmetric<u32>,
    peers: Vec<Tensor<u64>>,
    peers_of_flags: Vec<Tensor<u64>>,
}

impl AllReduce {
    fn new(world: &World, n: usize) -> AllReduce {
        let b = world.zeros([n]).unwrap();
        let flags = world.zeros([n.div_ceil(256)]).unwrap();
        AllReduce {
            a: world
                .from_fn([n], |rank, i| (i % 97) as f32 + 100.0 * rank as f32)
                .unwrap(),
            c: (0..world.ranks())
                .map(|rank| Tensor::zeros(world.stream(rank), [n]).unwrap())
                .collect(),
            peers: world.addresses_of(&b).unwrap(),
            peers_of_flags: world.addresses_of(&flags).unwrap(),
            b,
            flags,
        }
    }

    fn launch(&mut self, world: &World, turn: u32) -> tirx_rt::Result<()> {
        world.launch(|rank, stream| {
            kernels::all_reduce(
                stream,
                &self.a[rank],
                &mut self.b[rank],
                &mut self.c[rank],
                &self.flags[rank],
                &self.peers[rank],
                &self.peers_of_flags[rank],
                turn,
            )
        })
    }
}

#[test]
fn every_rank_sums_the_memory_of_all() {
    for world in worlds() {
        let ranks = world.ranks();
        for n in [1, 255, 256, 1000] {
            let mut all = AllReduce::new(&world, n);
            let sums: Vec<f32> = (0..n)
                .map(|i| {
                    (0..ranks)
                        .map(|rank| 2.0 * ((i % 97) as f32 + 100.0 * rank as f32))
                        .sum()
                })
                .collect();
            for turn in 1..=3 {
                all.launch(&world, turn).unwrap();
            }
            for rank in 0..ranks {
                assert_eq!(
                    all.c[rank].to_vec().unwrap(),
                    sums,
                    "rank {rank} of {ranks}, {n} elements"
                );
                let flags = all.flags[rank].to_vec().unwrap();
                assert!(flags.iter().all(|flag| *flag == 3 * ranks as u32), "{flags:?}");
            }
        }
        world.synchronize().unwrap();
    }
}

#[test]
fn tensors_stay_on_their_rank() {
    let world = World::simulated(2).unwrap();
    let mut all = AllReduce::new(&world, 8);
    // A tensor of another rank is one of another device.
    let error = world.launch(|rank, stream| {
        kernels::all_reduce(
            stream,
            &all.a[0],
            &mut all.b[rank],
            &mut all.c[rank],
            &all.flags[rank],
            &all.peers[rank],
            &all.peers_of_flags[rank],
            1,
        )
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("device"), "{error}");
    // The address of memory that is not symmetric.
    let own = Tensor::<f32>::zeros(world.stream(1), [8]).unwrap();
    let addresses = [all.b.addresses()[0], own.address()];
    all.peers[0].copy_from_slice(world.stream(0), &addresses).unwrap();
    let error = all.launch(&world, 1).unwrap_err().to_string();
    assert!(
        error.contains("is memory of rank 1 alone: other ranks may access symmetric memory only"),
        "{error}"
    );
    assert!(error.contains("in rank 0, block (0, 0, 0)"), "{error}");
}

#[test]
fn a_rank_launches_alone_with_its_own_memory() {
    let world = World::simulated(2).unwrap();
    for rank in 0..2 {
        let own = |value: f32| Tensor::from_slice(world.stream(rank), &[value; 256], [256]).unwrap();
        let mut out = own(0.0);
        kernels::add::n256(world.stream(rank), &own(1.0), &own(2.0), &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), [3.0; 256], "rank {rank}");
    }
}

#[test]
fn every_rank_launches_one_kernel_with_one_grid() {
    let world = World::simulated(2).unwrap();
    let mut all = AllReduce::new(&world, 8);
    let error = world.launch(|rank, stream| match rank {
        0 => Ok(()),
        _ => kernels::all_reduce(
            stream,
            &all.a[rank],
            &mut all.b[rank],
            &mut all.c[rank],
            &all.flags[rank],
            &all.peers[rank],
            &all.peers_of_flags[rank],
            1,
        ),
    });
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("rank 1 launches 1 kernels and rank 0 launches 0"),
        "{error}"
    );
    // Outside of `World::launch` a launch is of one rank, which waits for ever.
    let error = kernels::all_reduce(
        world.stream(0),
        &all.a[0],
        &mut all.b[0],
        &mut all.c[0],
        &all.flags[0],
        &all.peers[0],
        &all.peers_of_flags[0],
        1,
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("deadlock"), "{error}");
    assert!(World::simulated(0).is_err() && World::simulated(65).is_err());
    assert!(World::cuda(&[]).is_err());
}
