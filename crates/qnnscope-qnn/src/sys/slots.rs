//! Numbers of the slots in the function tables. Since core API 2.9 slots are only appended.

/// Core table (QnnInterface_t).
pub mod core {
    pub const PROPERTY_HAS_CAPABILITY: usize = 0;
    pub const BACKEND_CREATE: usize = 1;
    pub const BACKEND_GET_BUILD_ID: usize = 4;
    pub const BACKEND_VALIDATE_OP_CONFIG: usize = 7;
    pub const BACKEND_FREE: usize = 8;
    pub const CONTEXT_CREATE: usize = 9;
    pub const CONTEXT_GET_BINARY_SIZE: usize = 11;
    pub const CONTEXT_GET_BINARY: usize = 12;
    pub const CONTEXT_CREATE_FROM_BINARY: usize = 13;
    pub const CONTEXT_FREE: usize = 14;
    pub const GRAPH_CREATE: usize = 15;
    pub const GRAPH_SET_CONFIG: usize = 17;
    pub const GRAPH_ADD_NODE: usize = 18;
    pub const GRAPH_FINALIZE: usize = 19;
    pub const GRAPH_RETRIEVE: usize = 20;
    pub const GRAPH_EXECUTE: usize = 21;
    pub const GRAPH_EXECUTE_ASYNC: usize = 22;
    pub const TENSOR_CREATE_CONTEXT_TENSOR: usize = 23;
    pub const TENSOR_CREATE_GRAPH_TENSOR: usize = 24;
    pub const LOG_CREATE: usize = 25;
    pub const LOG_SET_LEVEL: usize = 26;
    pub const LOG_FREE: usize = 27;
    pub const PROFILE_CREATE: usize = 28;
    pub const PROFILE_GET_EVENTS: usize = 30;
    pub const PROFILE_GET_SUB_EVENTS: usize = 31;
    pub const PROFILE_GET_EVENT_DATA: usize = 32;
    pub const PROFILE_GET_EXTENDED_EVENT_DATA: usize = 33;
    pub const PROFILE_FREE: usize = 34;
    pub const MEM_REGISTER: usize = 35;
    pub const MEM_DEREGISTER: usize = 36;
    pub const DEVICE_GET_PLATFORM_INFO: usize = 37;
    pub const DEVICE_FREE_PLATFORM_INFO: usize = 38;
    pub const DEVICE_GET_INFRASTRUCTURE: usize = 39;
    pub const DEVICE_CREATE: usize = 40;
    pub const DEVICE_FREE: usize = 43;
    pub const ERROR_GET_MESSAGE: usize = 48;
    pub const CONTEXT_CREATE_FROM_BINARY_WITH_SIGNAL: usize = 55;
    pub const CONTEXT_CREATE_FROM_BINARY_LIST_ASYNC: usize = 56;
    pub const CONTEXT_CREATE_FROM_BINARY_WITH_CALLBACK: usize = 68;
}

/// System table (QnnSystemInterface_t).
pub mod system {
    pub const CONTEXT_CREATE: usize = 0;
    pub const CONTEXT_GET_METADATA: usize = 2;
    pub const CONTEXT_FREE: usize = 3;
    pub const LOG_CREATE: usize = 5;
    pub const LOG_FREE: usize = 7;
    pub const DLC_CREATE_FROM_FILE: usize = 8;
    pub const DLC_COMPOSE_GRAPHS: usize = 10;
    pub const DLC_FREE: usize = 12;
    pub const PROFILE_CREATE_TARGET: usize = 13;
    pub const PROFILE_SERIALIZE: usize = 14;
    pub const PROFILE_FREE_TARGET: usize = 15;
}

/// Slots that any supported model library may need: composing uses none beyond these.
pub const MODEL_LIBRARY_SLOTS: usize = 44;

/// Slots in the by-value table handed to model libraries; more than any known table, the surplus is zero.
pub const MODEL_LIBRARY_TABLE: usize = 128;

/// Slots of the core table by core minor version (major 2), where known: headers compiled (18, 27), runtimes measured
/// (36, 40), public bindings (37), and the revision history in between.
pub fn known_core_slots(minor: u32) -> Option<usize> {
    Some(match minor {
        9 | 10 => 48,
        11 => 51,
        12 => 54,
        13 | 14 => 55,
        15 | 16 => 56,
        17 => 59,
        18..=21 => 62,
        22..=24 => 64,
        25 => 66,
        26 => 67,
        27 => 68,
        28 | 29 => 69,
        36 | 37 => 72,
        40 => 75,
        _ => return None,
    })
}
