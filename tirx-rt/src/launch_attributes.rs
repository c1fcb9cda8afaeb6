//! What a caller wants of launches beyond what their kernels say.

use crate::image::LaunchConfig;
use crate::{Error, Result};

/// Attributes of the launches on a stream: [`Stream::with`](crate::Stream::with). Clusters, cooperation and shared memory are
/// the kernel's own; these are the caller's.
///
/// ```
/// # use tirx_rt::{Device, LaunchAttributes};
/// let stream = Device::simulator().new_stream()?;
/// let early = stream.with(LaunchAttributes::new().programmatic())?;
/// // kernels::first(&stream, &a, &mut b)?;
/// // kernels::second(&early, &b, &mut c)?; // may start before `first` has ended
/// # Ok::<(), tirx_rt::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchAttributes {
    pub(crate) programmatic: bool,
    pub(crate) priority: Option<u32>,
    pub(crate) shared_memory: Option<u8>,
}

impl LaunchAttributes {
    /// None.
    pub fn new() -> LaunchAttributes {
        LaunchAttributes::default()
    }

    /// The kernel may start before the previous kernel of the stream has ended (programmatic stream serialization). It must
    /// wait with `T.ptx.griddepcontrol.wait` before it uses what that one writes; the simulator reports it where it does not. Code for GPUs before
    /// Hopper does not wait, so it starts when the previous kernel has ended, on newer GPUs too.
    pub fn programmatic(self) -> LaunchAttributes {
        LaunchAttributes {
            programmatic: true,
            ..self
        }
    }

    /// Launches are preferred to those of less priority, as with
    /// [`new_stream_with_priority`](crate::Device::new_stream_with_priority). Without effect on a simulator.
    pub fn priority(self, priority: u32) -> LaunchAttributes {
        LaunchAttributes {
            priority: Some(priority),
            ..self
        }
    }

    /// The share of a multiprocessor's cache that is preferred as shared memory, in percent. Without effect on a simulator.
    pub fn shared_memory(self, percent: u8) -> LaunchAttributes {
        LaunchAttributes {
            shared_memory: Some(percent),
            ..self
        }
    }
}

/// The same as a launch needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    programmatic: bool,
    /// As the driver counts it.
    pub(crate) priority: Option<i32>,
    pub(crate) shared_memory: Option<u8>,
}

impl Wanted {
    pub(crate) fn new(attributes: LaunchAttributes, priority: Option<i32>) -> Result<Wanted> {
        match attributes.shared_memory {
            Some(percent @ 101..) => Err(Error::Shape(format!(
                "{percent} percent of the cache as shared memory: 100 is the most"
            ))),
            shared_memory => Ok(Wanted {
                programmatic: attributes.programmatic,
                priority,
                shared_memory,
            }),
        }
    }

    /// A configuration with what is wanted.
    #[inline]
    pub(crate) fn applied(&self, config: &LaunchConfig) -> LaunchConfig {
        LaunchConfig {
            programmatic: config.programmatic || self.programmatic,
            ..*config
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_add_to_the_kernels_own() {
        let own = LaunchConfig::default();
        let wanted = Wanted::new(LaunchAttributes::new().programmatic().priority(2), Some(-2)).unwrap();
        assert!(wanted.applied(&own).programmatic && !Wanted::default().applied(&own).programmatic);
        let error = Wanted::new(LaunchAttributes::new().shared_memory(101), None).unwrap_err();
        assert!(error.to_string().contains("100 is the most"), "{error}");
    }
}
