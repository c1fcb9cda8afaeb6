//! TVMScript text to IR and back.
