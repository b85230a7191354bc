//! What programs find when this library is loaded into them: the names that they look for. All that these do is in
//! `qnnscope_qnn::tap`.
//!
//! Two ways lead here. Preloaded (`LD_PRELOAD`), the library answers `dlsym` for the one name through which programs find a
//! QNN backend. In a backend's place (a copy of it named `libQnnHtp.so`, in a folder before the real one), it answers to that
//! name itself.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod exported;
