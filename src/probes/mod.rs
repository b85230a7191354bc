//! What the hardware and the processes are doing.

pub mod process;
