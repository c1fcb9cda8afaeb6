//! The `CUlaunchAttribute`s of a launch configuration.

use cudarc::driver::sys;
use sys::CUlaunchAttributeID_enum as Id;

use crate::image::LaunchConfig;
use crate::launch_attributes::Wanted;

/// The attributes of one launch, on the stack.
pub(super) struct Attributes {
    list: [sys::CUlaunchAttribute; 6],
    count: usize,
}

impl Attributes {
    pub(super) fn from_config(config: &LaunchConfig, wanted: &Wanted) -> Attributes {
        let nothing = sys::CUlaunchAttributeValue { cooperative: 0 };
        let mut attributes = Attributes {
            list: [attribute(Id::CU_LAUNCH_ATTRIBUTE_IGNORE, nothing); 6],
            count: 0,
        };
        let preferred = config.preferred_cluster != [1; 3];
        // A preferred cluster takes effect only where a cluster is given too (driver API).
        if config.cluster != [1; 3] || preferred {
            let value = cluster(config.cluster);
            attributes.push(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value);
        }
        if preferred {
            // The driver declares both values as three unsigned integers at offset zero.
            let value = cluster(config.preferred_cluster);
            attributes.push(Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, value);
        }
        if config.programmatic {
            let value = sys::CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            };
            attributes.push(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value);
        }
        if config.cooperative {
            let value = sys::CUlaunchAttributeValue { cooperative: 1 };
            attributes.push(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value);
        }
        if let Some(priority) = wanted.priority {
            let value = sys::CUlaunchAttributeValue { priority };
            attributes.push(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, value);
        }
        if let Some(percent) = wanted.shared_memory {
            let value = sys::CUlaunchAttributeValue {
                sharedMemCarveout: percent.into(),
            };
            attributes.push(Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, value);
        }
        attributes
    }

    fn push(&mut self, id: sys::CUlaunchAttributeID, value: sys::CUlaunchAttributeValue) {
        self.list[self.count] = attribute(id, value);
        self.count += 1;
    }

    /// The attributes that are set.
    pub(super) fn as_mut_slice(&mut self) -> &mut [sys::CUlaunchAttribute] {
        &mut self.list[..self.count]
    }
}

fn attribute(id: sys::CUlaunchAttributeID, value: sys::CUlaunchAttributeValue) -> sys::CUlaunchAttribute {
    sys::CUlaunchAttribute {
        id,
        pad: [0; 4],
        value,
    }
}

fn cluster([x, y, z]: [u32; 3]) -> sys::CUlaunchAttributeValue {
    sys::CUlaunchAttributeValue {
        clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and value of each attribute, the value as the driver reads it.
    fn listed(config: &LaunchConfig) -> Vec<(Id, [u32; 3])> {
        listed_with(config, &Wanted::default())
    }

    fn listed_with(config: &LaunchConfig, wanted: &Wanted) -> Vec<(Id, [u32; 3])> {
        let mut attributes = Attributes::from_config(config, wanted);
        let list = attributes.as_mut_slice().iter();
        list.map(|attribute| {
            // SAFETY: the attribute of this name was written with this field.
            let value = unsafe {
                match attribute.id {
                    Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                    | Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
                        let dim = attribute.value.clusterDim;
                        [dim.x, dim.y, dim.z]
                    }
                    Id::CU_LAUNCH_ATTRIBUTE_PRIORITY => [attribute.value.priority as u32, 0, 0],
                    Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
                        [attribute.value.sharedMemCarveout, 0, 0]
                    }
                    Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => [attribute.value.cooperative as u32, 0, 0],
                    _ => {
                        let allowed = attribute.value.programmaticStreamSerializationAllowed;
                        [allowed as u32, 0, 0]
                    }
                }
            };
            (attribute.id, value)
        })
        .collect()
    }

    #[test]
    fn each_property_of_a_launch_is_its_attribute() {
        let plain = LaunchConfig::default();
        assert!(listed(&plain).is_empty());
        let cluster = LaunchConfig {
            cluster: [2, 4, 1],
            ..plain
        };
        let dimension = (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [2, 4, 1]);
        assert_eq!(listed(&cluster), [dimension]);
        let all = LaunchConfig {
            preferred_cluster: [4, 4, 1],
            programmatic: true,
            cooperative: true,
            ..cluster
        };
        assert_eq!(
            listed(&all),
            [
                dimension,
                (Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, [4, 4, 1]),
                (
                    Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                    [1, 0, 0]
                ),
                (Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0]),
            ]
        );
    }

    #[test]
    fn what_the_caller_wants_is_added() {
        let wanted = Wanted::new(crate::LaunchAttributes::new().shared_memory(50), Some(-3)).unwrap();
        assert_eq!(
            listed_with(&LaunchConfig::default(), &wanted),
            [
                (Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, [-3i32 as u32, 0, 0]),
                (
                    Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                    [50, 0, 0]
                ),
            ]
        );
    }

    #[test]
    fn a_preferred_cluster_comes_with_a_cluster() {
        let config = LaunchConfig {
            preferred_cluster: [2, 1, 1],
            ..LaunchConfig::default()
        };
        assert_eq!(
            listed(&config),
            [
                (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [1, 1, 1]),
                (Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, [2, 1, 1]),
            ]
        );
    }
}
