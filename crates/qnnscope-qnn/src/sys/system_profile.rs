//! Records of the system library's profile serializer.

use super::records::{EventData, ExtendedEventData};
use std::ffi::c_char;

/// QnnSystemProfile_SerializationTargetFile_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileTargetFile {
    pub name: *const c_char,
    pub directory: *const c_char,
}

/// QnnSystemProfile_SerializationTarget_t, passed by value (24 bytes).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileTarget {
    /// [`PROFILE_TARGET_FILE`].
    pub kind: u32,
    pub file: ProfileTargetFile,
}

/// Kind of a [`ProfileTarget`]: a file.
pub const PROFILE_TARGET_FILE: u32 = 1;

/// QnnSystemProfile_SerializationFileHeader_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileFileHeader {
    pub app_name: *const c_char,
    pub app_version: *const c_char,
    pub backend_version: *const c_char,
}

/// The union of QnnSystemProfile_SerializationTargetConfig_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ProfileTargetUnion {
    pub max_messages: u32,
    pub header: ProfileFileHeader,
}

/// QnnSystemProfile_SerializationTargetConfig_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileTargetConfig {
    pub option: u32,
    pub value: ProfileTargetUnion,
}

/// Option of a [`ProfileTargetConfig`]: the file's header.
pub const PROFILE_TARGET_OPTION_HEADER: u32 = 1;

/// QnnSystemProfile_HeaderV1_t; times in microseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileHeader {
    pub start_us: u64,
    pub stop_us: u64,
    pub start_memory: u64,
    pub stop_memory: u64,
    pub method: u32,
    /// 0 public, 1 private.
    pub visibility: u32,
    pub graph_name: *const c_char,
}

/// The union of QnnSystemProfile_ProfileEventV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ProfileEventUnion {
    pub plain: EventData,
    pub extended: ExtendedEventData,
}

/// QnnSystemProfile_ProfileEventV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileEventRecord {
    /// 0 plain, 1 extended.
    pub kind: u32,
    pub data: ProfileEventUnion,
    pub sub_events: *const ProfileEventRecord,
    pub sub_event_count: u32,
}

/// QnnSystemProfile_ProfileDataV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileDataV1 {
    pub header: ProfileHeader,
    pub events: *const ProfileEventRecord,
    pub event_count: u32,
}

/// QnnSystemProfile_ProfileData_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileData {
    pub version: u32,
    pub v1: ProfileDataV1,
}
