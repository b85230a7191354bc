#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| qnnscope::fuzz::context_binary(bytes));
