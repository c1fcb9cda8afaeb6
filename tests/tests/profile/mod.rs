//! Expected records of the profiled kernel, on any device.

use tirx_rt::{Profile, ProfilePoint};
use tirx_tests::profiled::{BLOCKS, EVENTS, GROUPS, TILES};

/// Decodes the records and checks the events of each group and their order.
pub(crate) fn decoded(records: &[u64]) -> Profile {
    let profile = Profile::decode(records, &EVENTS).unwrap();
    assert_eq!((profile.blocks, profile.groups), (BLOCKS, GROUPS));
    for block in 0..BLOCKS {
        for group in 0..GROUPS {
            let own: Vec<_> = profile
                .events
                .iter()
                .filter(|e| e.block == block && e.group == group)
                .collect();
            let work = if group == 0 { "copy" } else { "scale" };
            let expected = ["wait", "wait", work, work].repeat(TILES);
            let names: Vec<&str> = own.iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names, expected, "block {block}, group {group}");
            for pair in own.chunks(2) {
                assert_eq!(
                    (pair[0].point, pair[1].point),
                    (ProfilePoint::Begin, ProfilePoint::End)
                );
                assert!(pair[0].time <= pair[1].time);
            }
        }
    }
    profile
}
