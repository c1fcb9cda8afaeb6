//! Toy actors, run in every order that matters.

use super::*;

/// A step of a toy actor.
#[derive(Clone, Copy)]
enum Step {
    Write(u64),
    Read(u64),
    /// Holds a lock of a number, which others wait for.
    Lock(usize),
    Unlock(usize),
}

/// Runs toy actors in every order; gives the orders in which they ran, and whether one was a deadlock.
fn explore(programs: &[&[Step]]) -> (Vec<Vec<usize>>, bool) {
    let exploration = Exploration::new(10_000);
    let (mut orders, mut stuck) = (Vec::new(), false);
    while exploration.more() {
        let mut at = vec![0; programs.len()];
        let mut known = vec![Events::default(); programs.len()];
        let mut locks = [false; 4];
        let mut order = Vec::new();
        loop {
            let runs = |i: &usize| match programs[*i].get(at[*i]) {
                Some(Step::Lock(lock)) => !locks[*lock],
                step => step.is_some(),
            };
            let enabled: Vec<usize> = (0..programs.len()).filter(runs).collect();
            let actor = |i: usize| Actor::Lanes {
                block: 0,
                warp: i as u32,
                lane: 0,
                order: 0,
            };
            if enabled.is_empty() {
                stuck |= (0..programs.len()).any(|i| at[i] < programs[i].len());
                orders.push(order);
                break;
            }
            let actors: Vec<Actor> = enabled.iter().map(|i| actor(*i)).collect();
            let Some(chosen) = exploration.choose(&actors, &[]) else {
                exploration.leave();
                break;
            };
            let who = enabled[actors.iter().position(|a| *a == chosen).unwrap()];
            let write = Touch::Write;
            let touch = match programs[who][at[who]] {
                Step::Write(object) => (Object::Global(object), write),
                Step::Read(object) => (Object::Global(object), Touch::Read),
                Step::Lock(lock) | Step::Unlock(lock) => {
                    locks[lock] = matches!(programs[who][at[who]], Step::Lock(_));
                    (Object::Columns(lock as u32), write)
                }
            };
            at[who] += 1;
            order.push(who);
            exploration.acted(vec![touch], &mut known[who]);
        }
    }
    assert_eq!(exploration.explored().cut, None);
    (orders, stuck)
}

#[test]
fn independent_steps_run_in_one_order() {
    let (orders, stuck) = explore(&[
        &[Step::Write(1), Step::Write(2)],
        &[Step::Write(3)],
        &[Step::Read(4)],
    ]);
    assert_eq!((orders.len(), stuck), (1, false));
}

#[test]
fn dependent_steps_run_in_each_order() {
    // Three writers of one place: six orders; two readers beside each other are not told apart.
    assert_eq!(
        explore(&[&[Step::Write(1)], &[Step::Write(1)], &[Step::Write(1)]])
            .0
            .len(),
        6
    );
    assert_eq!(
        explore(&[&[Step::Write(1)], &[Step::Read(1)], &[Step::Read(1)]])
            .0
            .len(),
        4
    );
    // x = 1; read y against y = 1; read x: four orders of the two pairs but the impossible one.
    let (orders, _) = explore(&[&[Step::Write(1), Step::Read(2)], &[Step::Write(2), Step::Read(1)]]);
    assert_eq!(orders.len(), 3);
}

#[test]
fn a_deadlock_of_locks_in_two_orders_is_found() {
    let there: &[Step] = &[Step::Lock(0), Step::Lock(1), Step::Unlock(1), Step::Unlock(0)];
    let back: &[Step] = &[Step::Lock(1), Step::Lock(0), Step::Unlock(0), Step::Unlock(1)];
    assert!(explore(&[there, back]).1);
    assert!(!explore(&[there, there]).1);
}

#[test]
fn arrivals_of_one_phase_commute_and_waits_stay_behind_them() {
    let arrive = |phase, completes| Touch::Arrive { phase, completes };
    assert!(!depend(arrive(0, false), arrive(0, true)));
    assert!(depend(arrive(0, true), arrive(1, false)));
    assert!(depend(arrive(0, false), Touch::Wait { parity: 0 }));
    // Phase 0 was not complete before: the wait for it cannot come first. The next phase's arrival could.
    assert!(!reversible(arrive(0, true), Touch::Wait { parity: 0 }));
    assert!(reversible(arrive(1, true), Touch::Wait { parity: 0 }));
}
