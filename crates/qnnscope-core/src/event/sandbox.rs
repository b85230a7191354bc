//! How vendor and model code was confined.

use serde::{Deserialize, Serialize};

/// How far a runner was confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Everything qnnscope asks for is in force.
    Enforced,
    /// Part of it; [`Sandbox::missing`] has the rest.
    Partial,
    /// Nothing but a cleared environment: the system has no Landlock, or it failed.
    Unavailable,
    /// Switched off by the user, or the runner is not on this machine.
    #[default]
    Off,
}

/// What was in force while backend or model code ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a restriction by itself, as documents list them")]
pub struct Sandbox {
    /// In one word.
    pub state: SandboxState,
    /// Landlock version used; `None` without Landlock.
    pub landlock_abi: Option<u32>,
    /// Only the task's files can be read, only its outputs and a scratch folder written, and no programs started.
    pub files: bool,
    /// TCP connections can be neither opened nor accepted.
    pub tcp: bool,
    /// No signals to other processes.
    pub signals: bool,
    /// New privileges cannot be gained, for example through set-user-id programs.
    pub no_new_privileges: bool,
    /// What is not in force, and why.
    pub missing: Vec<String>,
}

impl Sandbox {
    /// One-line summary for display.
    pub fn summary(&self) -> String {
        let parts = [
            (self.files, "files"),
            (self.tcp, "TCP"),
            (self.signals, "signals"),
            (self.no_new_privileges, "no new privileges"),
        ];
        let parts: Vec<&str> = parts.into_iter().filter_map(|(holds, name)| holds.then_some(name)).collect();
        let with = self.landlock_abi.map_or_else(String::new, |abi| format!(", Landlock ABI {abi}"));
        match self.state {
            SandboxState::Enforced => format!("in force ({}{with})", parts.join(", ")),
            SandboxState::Partial => {
                format!("in force in part ({}{with}); missing: {}", parts.join(", "), self.missing.join("; "))
            }
            SandboxState::Unavailable => format!("not available: {}", self.missing.join("; ")),
            SandboxState::Off => "off".to_owned(),
        }
    }
}
