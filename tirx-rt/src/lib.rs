//! tirx-rt
