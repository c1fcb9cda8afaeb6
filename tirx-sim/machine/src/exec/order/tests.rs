use super::*;

const ALL: u32 = u32::MAX;

/// A block of two warps, of a launch of four blocks.
fn order(block: u32) -> Order {
    let mut order = Order::new(true, true, &[ALL, ALL], 4);
    order.reset(block, (block, 1), (0, u32::MAX));
    order
}

fn write(order: &Order, place: &mut Place, warp: usize, lane: u32) -> Result<(), Conflict> {
    place.write(
        order,
        order.mark(warp, 7, Kind::Plain).with_lanes(1 << lane),
        lane,
        false,
    )
}

fn read(order: &Order, place: &mut Place, warp: usize, lane: u32) -> Result<(), Conflict> {
    place.read(
        order,
        order.mark(warp, 9, Kind::Plain).with_lanes(1 << lane),
        lane,
        false,
    )
}

fn strong(
    order: &mut Order,
    place: &mut Place,
    (warp, lane): (usize, u32),
    semantics: &str,
    scope: Scope,
    (reads, writes): (bool, bool),
) -> Result<(), Conflict> {
    let mark = order.mark(warp, 11, Kind::Plain).with_lanes(1 << lane);
    place.strong(order, mark, lane, Strong::new(semantics, scope, reads, writes))
}

const UPDATE: (bool, bool) = (true, true);
const LOAD: (bool, bool) = (true, false);
const STORE: (bool, bool) = (false, true);

#[test]
fn a_block_barrier_orders_all_threads() {
    let mut order = order(0);
    let mut place = Place::EMPTY;
    assert_eq!(write(&order, &mut place, 0, 3), Ok(()));
    assert_eq!(read(&order, &mut place, 0, 3), Ok(()), "its own write");
    assert!(matches!(read(&order, &mut place, 0, 4), Err(Conflict::Write(m)) if m.thread() == 3));
    assert!(read(&order, &mut place, 1, 3).is_err());
    order.barrier();
    assert_eq!(read(&order, &mut place, 1, 3), Ok(()));
    assert_eq!(read(&order, &mut place, 0, 5), Ok(()));
    assert!(
        write(&order, &mut place, 1, 3).is_err(),
        "lane 5 of warp 0 has read"
    );
    order.barrier();
    assert_eq!(write(&order, &mut place, 1, 0), Ok(()));
}

#[test]
fn a_warp_barrier_orders_the_warp_alone() {
    let mut order = order(0);
    let mut place = Place::EMPTY;
    assert_eq!(write(&order, &mut place, 1, 0), Ok(()));
    order.warp_sync(1);
    assert_eq!(read(&order, &mut place, 1, 5), Ok(()));
    assert!(read(&order, &mut place, 0, 5).is_err());
    assert!(write(&order, &mut place, 1, 6).is_err(), "lane 5 has just read");
    order.warp_sync(1);
    assert_eq!(write(&order, &mut place, 1, 6), Ok(()));
}

#[test]
fn every_reader_is_remembered() {
    let mut order = order(0);
    let mut place = Place::EMPTY;
    assert_eq!(read(&order, &mut place, 0, 1), Ok(()));
    order.warp_sync(0);
    for lane in 0..8 {
        assert_eq!(read(&order, &mut place, 1, lane), Ok(()));
    }
    let released = order.release(1, ALL);
    order.acquire(0, 1 << 2, &released);
    assert_eq!(
        write(&order, &mut place, 0, 2),
        Ok(()),
        "all are ordered before lane 2"
    );
    assert!(read(&order, &mut place, 1, 1).is_err());
}

#[test]
fn relaxed_atomics_order_nothing_else() {
    let mut order = order(0);
    let (mut data, mut counter) = (Place::EMPTY, Place::EMPTY);
    assert_eq!(write(&order, &mut data, 0, 0), Ok(()));
    assert_eq!(
        strong(&mut order, &mut counter, (0, 0), "relaxed", Scope::Gpu, UPDATE),
        Ok(())
    );
    assert_eq!(
        strong(&mut order, &mut counter, (1, 0), "relaxed", Scope::Gpu, UPDATE),
        Ok(())
    );
    assert!(read(&order, &mut data, 1, 0).is_err());
    assert!(
        read(&order, &mut counter, 0, 1).is_err(),
        "a plain read among atomics"
    );
    order.barrier();
    assert_eq!(read(&order, &mut counter, 0, 1), Ok(()));
}

#[test]
fn release_and_acquire_order_their_threads_alone() {
    let mut order = order(0);
    let (mut data, mut flag, mut other) = (Place::EMPTY, Place::EMPTY, Place::EMPTY);
    assert_eq!(write(&order, &mut data, 0, 0), Ok(()));
    assert_eq!(write(&order, &mut other, 0, 1), Ok(()));
    assert_eq!(
        strong(&mut order, &mut flag, (0, 0), "release", Scope::Gpu, STORE),
        Ok(())
    );
    assert_eq!(
        strong(&mut order, &mut flag, (1, 4), "acquire", Scope::Gpu, LOAD),
        Ok(())
    );
    assert_eq!(read(&order, &mut data, 1, 4), Ok(()));
    assert!(
        read(&order, &mut other, 1, 4).is_err(),
        "lane 1 has released nothing"
    );
    assert!(
        read(&order, &mut data, 1, 5).is_err(),
        "lane 5 has acquired nothing"
    );
}

#[test]
fn fences_make_relaxed_accesses_release_and_acquire() {
    let mut order = order(0);
    let (mut data, mut flag) = (Place::EMPTY, Place::EMPTY);
    assert_eq!(write(&order, &mut data, 0, 0), Ok(()));
    order.fence(0, 1, Scope::Gpu, false);
    assert_eq!(
        strong(&mut order, &mut flag, (0, 0), "relaxed", Scope::Gpu, UPDATE),
        Ok(())
    );
    assert_eq!(
        strong(&mut order, &mut flag, (1, 0), "relaxed", Scope::Gpu, UPDATE),
        Ok(())
    );
    assert!(read(&order, &mut data, 1, 0).is_err(), "not before its own fence");
    order.fence(1, 1, Scope::Gpu, false);
    assert_eq!(read(&order, &mut data, 1, 0), Ok(()));
}

#[test]
fn fences_hold_across_barriers_if_sequentially_consistent() {
    for sc in [true, false] {
        let (mut here, mut there) = (order(0), order(3));
        let (mut data, mut late, mut flag) = (Place::EMPTY, Place::EMPTY, Place::EMPTY);
        // Here warp 1 writes and executes a fence, and warp 0 sets the flag; there warp 0 reads it, and warp 1 executes a
        // fence and reads.
        assert_eq!(write(&here, &mut data, 1, 7), Ok(()));
        here.fence(1, u32::MAX, Scope::Gpu, sc);
        assert_eq!(write(&here, &mut late, 1, 7), Ok(()));
        here.barrier();
        assert_eq!(
            strong(&mut here, &mut flag, (0, 0), "relaxed", Scope::Gpu, UPDATE),
            Ok(())
        );
        assert_eq!(
            strong(&mut there, &mut flag, (0, 0), "relaxed", Scope::Gpu, UPDATE),
            Ok(())
        );
        there.barrier();
        assert!(read(&there, &mut data, 1, 7).is_err(), "not before its own fence");
        there.fence(1, u32::MAX, Scope::Gpu, sc);
        assert_eq!(read(&there, &mut data, 1, 7).is_ok(), sc);
        assert!(read(&there, &mut late, 1, 7).is_err(), "written behind the fence");
    }
}

#[test]
fn scopes_bound_what_is_released() {
    let (mut here, mut there) = (order(0), order(3));
    let (mut data, mut flag) = (Place::EMPTY, Place::EMPTY);
    assert_eq!(write(&here, &mut data, 0, 0), Ok(()));
    assert_eq!(
        strong(&mut here, &mut flag, (0, 0), "release", Scope::Cta, STORE),
        Ok(())
    );
    assert!(strong(&mut there, &mut flag, (0, 0), "acquire", Scope::Gpu, LOAD).is_err());
    let mut flag = Place::EMPTY;
    assert_eq!(
        strong(&mut here, &mut flag, (0, 0), "release", Scope::Gpu, STORE),
        Ok(())
    );
    assert_eq!(
        strong(&mut there, &mut flag, (0, 0), "acquire", Scope::Gpu, LOAD),
        Ok(())
    );
    assert_eq!(read(&there, &mut data, 0, 0), Ok(()));
}

#[test]
fn a_barrier_orders_tensor_memory_without_fences() {
    let mut order = order(0);
    let mut place = Place::EMPTY;
    let mark = order.mark(0, 0, Kind::Plain).with_lanes(u32::MAX);
    assert_eq!(place.write_together(&order, mark, true), Ok(()));
    let read = order.mark(1, 0, Kind::Plain).with_lanes(u32::MAX);
    assert_eq!(place.read_together(&order, read), Err(Conflict::Write(mark)));
    order.barrier();
    let read = order.mark(1, 0, Kind::Plain).with_lanes(u32::MAX);
    assert_eq!(place.read_together(&order, read), Ok(()));
}

#[test]
fn relaxed_synchronization_orders_tensor_memory_with_a_fence_on_each_side() {
    for (before, after) in [(true, true), (true, false), (false, true)] {
        let mut order = order(0);
        let mut place = Place::EMPTY;
        let mark = order.mark(0, 0, Kind::Plain).with_lanes(u32::MAX);
        assert_eq!(place.write_together(&order, mark, true), Ok(()));
        if before {
            order.tensor_fence_before(0, u32::MAX);
        }
        let published = order.published(0, u32::MAX);
        order.hear(1, u32::MAX, Scope::Cta, &published);
        if after {
            order.tensor_fence_after(1, u32::MAX);
        }
        let read = order.mark(1, 0, Kind::Plain).with_lanes(u32::MAX);
        let expected = match (before, after) {
            (true, true) => Ok(()),
            (true, false) => Err(Conflict::Unmet(mark, true)),
            _ => Err(Conflict::Write(mark)),
        };
        assert_eq!(place.clone().read_together(&order, read), expected);
        let freed = place.write_together(&order, read, false);
        assert_eq!(freed.is_ok(), before, "freeing is not asynchronous");
    }
}
