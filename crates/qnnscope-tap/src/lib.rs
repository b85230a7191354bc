//! The names that programs look up when this library is loaded into them. Their implementation is in
//! `qnnscope_qnn::tap`.
//!
//! There are two ways in. Preloaded (`LD_PRELOAD`), the library answers `dlsym` for the one name through which programs
//! find a QNN backend. In place of a backend (a copy named `libQnnHtp.so`, in a folder before the real one), it exports
//! that name itself.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod exported;
