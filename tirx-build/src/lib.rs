//! tirx-build
