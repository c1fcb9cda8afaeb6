//! tirx-sim
