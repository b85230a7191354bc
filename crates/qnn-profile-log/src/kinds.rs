//! The numbers of the format, by name. Unknown ones are kept as numbers.

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Nothing (0).
    None,
    /// One inference.
    Execute,
    /// Finalize of one graph.
    Finalize,
    /// One inference started asynchronously.
    ExecuteAsync,
    /// Context created from a context binary.
    CreateFromBinary,
    /// Everything freed.
    DeInit,
    /// Context created.
    ContextCreate,
    /// Graphs composed by a model library, or by ONNX Runtime.
    ComposeGraphs,
    /// Inferences per second over a whole loop: a count and a time.
    ExecuteIps,
    /// A part of a graph.
    GraphComponent,
    /// Backend library loaded.
    LibraryLoad,
    /// A binary section applied.
    ApplyBinarySection,
    /// Finalize of a context.
    ContextFinalize,
    /// The size of the context binary was queried.
    GetBinarySize,
    /// Context binary fetched.
    GetBinary,
    /// The size of a binary section was queried.
    GetBinarySectionSize,
    /// Finalize of tensor updates.
    FinalizeTensorUpdates,
    /// A binary section updated.
    UpdateBinarySection,
    /// A number that this version does not know.
    Other(u8),
}

impl Method {
    /// From the format's number.
    pub fn from_number(number: u8) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Execute,
            2 => Self::Finalize,
            3 => Self::ExecuteAsync,
            4 => Self::CreateFromBinary,
            5 => Self::DeInit,
            6 => Self::ContextCreate,
            7 => Self::ComposeGraphs,
            8 => Self::ExecuteIps,
            9 => Self::GraphComponent,
            10 => Self::LibraryLoad,
            11 => Self::ApplyBinarySection,
            12 => Self::ContextFinalize,
            13 => Self::GetBinarySize,
            14 => Self::GetBinary,
            15 => Self::GetBinarySectionSize,
            16 => Self::FinalizeTensorUpdates,
            17 => Self::UpdateBinarySection,
            other => Self::Other(other),
        }
    }

    /// Name in JSON; `None` for an unknown number.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::None => "none",
            Self::Execute => "execute",
            Self::Finalize => "finalize",
            Self::ExecuteAsync => "execute_async",
            Self::CreateFromBinary => "create_from_binary",
            Self::DeInit => "de_init",
            Self::ContextCreate => "context_create",
            Self::ComposeGraphs => "compose_graphs",
            Self::ExecuteIps => "execute_ips",
            Self::GraphComponent => "graph_component",
            Self::LibraryLoad => "library_load",
            Self::ApplyBinarySection => "apply_binary_section",
            Self::ContextFinalize => "context_finalize",
            Self::GetBinarySize => "get_binary_size",
            Self::GetBinary => "get_binary",
            Self::GetBinarySectionSize => "get_binary_section_size",
            Self::FinalizeTensorUpdates => "finalize_tensor_updates",
            Self::UpdateBinarySection => "update_binary_section",
            Self::Other(_) => return None,
        })
    }

    /// One inference, synchronous or not.
    pub fn is_inference(self) -> bool {
        matches!(self, Self::Execute | Self::ExecuteAsync)
    }

    /// Finalizing, creating a context (also from a binary), and composing.
    pub fn is_setup(self) -> bool {
        matches!(self, Self::Finalize | Self::CreateFromBinary | Self::ContextCreate | Self::ComposeGraphs)
    }
}

/// Unit of an event's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
    /// Cycles of the accelerator.
    Cycles,
    /// A number of something.
    Count,
    /// The value is an opaque object.
    Object,
    /// No unit.
    NoUnit,
    /// A number that this version does not know.
    Other(u32),
}

impl Unit {
    /// From the format's number.
    pub fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Microseconds,
            2 => Self::Bytes,
            3 => Self::Cycles,
            4 => Self::Count,
            5 => Self::Object,
            6 => Self::NoUnit,
            other => Self::Other(other),
        }
    }

    /// Name in JSON; `None` for an unknown number.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Microseconds => "us",
            Self::Bytes => "bytes",
            Self::Cycles => "cycles",
            Self::Count => "count",
            Self::Object => "object",
            Self::NoUnit => "none",
            Self::Other(_) => return None,
        })
    }

    /// As in the vendor's text, where an unknown unit counts as microseconds.
    pub(super) fn in_text(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Cycles => "cycles",
            Self::Count => "count",
            Self::NoUnit => "",
            Self::Microseconds | Self::Object | Self::Other(_) => "us",
        }
    }
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Initialisation, timed by the backend.
    Init,
    /// Finalize, timed by the backend.
    Finalize,
    /// Execution, timed by the backend.
    Execute,
    /// One op.
    Node,
    /// Wait in the queue of an asynchronous execution.
    QueueWait,
    /// Before the device works.
    PreProcess,
    /// On the device.
    Device,
    /// After the device worked.
    PostProcess,
    /// De-initialisation, timed by the backend.
    DeInit,
    /// A trace event.
    Trace,
    /// One of the backend's own, from 1000 on (HTP: 3004 is the accelerator's time in microseconds, and so on).
    Backend(u32),
    /// Any other number; HTP's finalize stages have 0.
    Other(u32),
}

impl EventType {
    /// From the format's number.
    pub fn from_number(number: u32) -> Self {
        match number {
            100 => Self::Init,
            300 => Self::Finalize,
            400 => Self::Execute,
            404 => Self::Node,
            405 => Self::QueueWait,
            406 => Self::PreProcess,
            407 => Self::Device,
            408 => Self::PostProcess,
            500 => Self::DeInit,
            600 => Self::Trace,
            own if own >= 1000 => Self::Backend(own),
            other => Self::Other(other),
        }
    }

    /// Name in JSON, or else the number.
    pub fn name(self) -> Result<&'static str, u32> {
        Ok(match self {
            Self::Init => "init",
            Self::Finalize => "finalize",
            Self::Execute => "execute",
            Self::Node => "node",
            Self::QueueWait => "queue_wait",
            Self::PreProcess => "pre_process",
            Self::Device => "device",
            Self::PostProcess => "post_process",
            Self::DeInit => "de_init",
            Self::Trace => "trace",
            Self::Backend(number) | Self::Other(number) => return Err(number),
        })
    }
}
