//! Actions that keys trigger.

use super::picker::Listing;

/// A change to the view or a request to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// One of the actions a key can be bound to.
    Key(KeyAction),
    /// A character for the focused text field.
    Type(char),
    /// A mouse action at a cell, counted from the left and the top.
    Point(Gesture, u16, u16),
    /// Pasted text.
    Paste(String),
    /// A directory was read for the file picker.
    Listed(Listing),
    /// Something to tell the user in the footer.
    Notice(String),
}

/// What the mouse does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gesture {
    /// A button goes down.
    Click,
    /// The wheel turns up, or down.
    Wheel {
        /// Down, towards the end.
        down: bool,
    },
}

macro_rules! key_actions {
    ($($variant:ident $name:literal $short:literal $help:literal;)*) => {
        /// The actions that keys are bound to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum KeyAction {
            $(#[doc = $help] $variant,)*
        }

        impl KeyAction {
            /// All actions, in the order of the help pane.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name in key files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A word or two for the footer.
            pub fn short(self) -> &'static str {
                match self { $(Self::$variant => $short,)* }
            }

            /// One line of help.
            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

key_actions! {
    Quit "quit" "quit" "Stop the run and quit";
    Interrupt "interrupt" "stop, then quit" "Stop the run; quit if nothing runs";
    Help "help" "help" "Show or hide all keys";
    Back "back" "back" "Close the open pane, or clear the filter";
    Pause "pause" "pause" "Freeze or resume the view; the run goes on";
    Sessions "sessions" "sessions" "Session history, to open another one; press again to return";
    Play "play" "play" "Play or pause the recording";
    SeekBack "seek-back" "back" "Go back in the recording";
    SeekForward "seek-forward" "forward" "Go forward in the recording";
    SeekStart "seek-start" "start" "Go to the start of the recording";
    SeekEnd "seek-end" "end" "Show all of the recording";
    Slower "slower" "slower" "Play the recording slower";
    Faster "faster" "faster" "Play the recording faster";
    StopRun "stop-run" "stop" "Stop the run; its figures stay";
    RestartRun "restart-run" "restart" "Run the same model on the same backend again";
    SwitchBackend "switch-backend" "backend" "Run the same model on another backend";
    NewRun "new-run" "new run" "Choose device, model and backends of another run";
    NextRun "next-run" "next run" "Show the next run";
    PreviousRun "previous-run" "previous run" "Show the previous run";
    FocusNext "focus-next" "next pane" "Move the focus to the next pane or section";
    FocusPrevious "focus-previous" "previous pane" "Move the focus to the previous pane or section";
    Zoom "zoom" "zoom" "Show the focused pane alone, or all panes again";
    Diagnosis "diagnosis" "diagnosis" "Why a run failed; press again to return";
    Findings "findings" "findings" "What the figures mean; press again to return";
    Outliers "outliers" "outliers" "Inferences far slower than the others; press again to return";
    Modes "modes" "modes" "Results of the measurement mode; press again to return";
    Placement "placement" "placement" "Which node of an ONNX model ran where, and why; press again to return";
    Compare "compare" "compare" "Runs side by side; press again to return";
    Program "program" "program" "Activity and output of the tapped program; press again to return";
    OpTypes "op-types" "op types" "Compare layers, or op types and refused ops";
    Baseline "baseline" "baseline" "Use the selected run as baseline";
    NextEntry "next-entry" "next" "Next entry of the list, wherever the focus is";
    PreviousEntry "previous-entry" "previous" "Previous entry of the list, wherever the focus is";
    Copy "copy" "copy" "Send the selected text to the terminal's clipboard";
    WriteReport "write-report" "report" "Write an HTML report of the session into this folder";
    Up "up" "up" "One row up";
    Down "down" "down" "One row down";
    PageUp "page-up" "page up" "One page up";
    PageDown "page-down" "page down" "One page down";
    First "first" "first" "First row";
    Last "last" "last" "Last row";
    Open "open" "open" "Open, choose or go to the selection";
    Toggle "toggle" "toggle" "Select or deselect the row";
    StartRun "start-run" "run" "Start the chosen model on the chosen backends";
    Browse "browse" "browse" "Choose a model file";
    Filter "filter" "filter" "Filter the layers by name or type";
    SortNext "sort-next" "sort" "Sort the layers by the next column";
    SortPrevious "sort-previous" "sort back" "Sort the layers by the previous column";
    SortReverse "sort-reverse" "reverse" "Reverse the order of the layers";
    ToggleHidden "toggle-hidden" "hidden files" "Show or hide hidden files";
    Parent "parent" "parent folder" "Go to the parent folder";
    DeleteBack "delete-back" "delete" "Delete the character before the cursor";
    DeleteAll "delete-all" "clear" "Empty the text field";
    Suspend "suspend" "suspend" "Suspend qnnscope (resume it from the shell)";
    Mouse "mouse" "mouse" "Leave the mouse to the terminal (to select text), or take it back";
    Redraw "redraw" "redraw" "Redraw the screen";
    Nothing "none" "" "Do nothing; removes a default key";
}

impl KeyAction {
    /// By its name in key files.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}

impl From<KeyAction> for Action {
    fn from(action: KeyAction) -> Self {
        Self::Key(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for &action in KeyAction::ALL {
            assert_eq!(KeyAction::by_name(action.name()), Some(action));
        }
        assert_eq!(KeyAction::by_name("fly"), None);
    }
}
