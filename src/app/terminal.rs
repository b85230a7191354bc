//! The terminal: taken over, always restored, and its number of colours.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::style::Color;
use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::Command;
use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};

/// The user's choice of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// From the environment: `NO_COLOR`, `COLORTERM`, `TERM`.
    #[default]
    Auto,
    /// None.
    Never,
    /// The 16 colours of the terminal.
    Ansi16,
    /// The table of 256 colours.
    Ansi256,
    /// 24 bits.
    Rgb,
}

/// The number of colours used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// None.
    None,
    /// The 16 colours of the terminal.
    Ansi16,
    /// The table of 256.
    Indexed,
    /// 24 bits.
    Rgb,
}

impl ColorDepth {
    /// The depth for a choice in an environment (`variable` looks one up). An explicit choice overrides `NO_COLOR`.
    pub fn detect(choice: ColorChoice, variable: impl Fn(&str) -> Option<String>) -> Self {
        match choice {
            ColorChoice::Never => return Self::None,
            ColorChoice::Ansi16 => return Self::Ansi16,
            ColorChoice::Ansi256 => return Self::Indexed,
            ColorChoice::Rgb => return Self::Rgb,
            ColorChoice::Auto => {}
        }
        let term = variable("TERM").unwrap_or_default();
        if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) || term == "dumb" {
            return Self::None;
        }
        let colorterm = variable("COLORTERM").unwrap_or_default();
        if colorterm == "truecolor" || colorterm == "24bit" || term.ends_with("-direct") {
            Self::Rgb
        } else if term.contains("256") {
            Self::Indexed
        } else {
            Self::Ansi16
        }
    }

    /// The nearest colour of the depth; `None` if it has none.
    pub fn reduce(self, color: Color) -> Option<Color> {
        match (self, color) {
            (Self::None, _) => None,
            (Self::Indexed, Color::Rgb(r, g, b)) => Some(Color::Indexed(cube_index(r, g, b))),
            (Self::Ansi16, Color::Rgb(r, g, b)) => Some(nearest_ansi(r, g, b)),
            (_, color) => Some(color),
        }
    }
}

/// True if the environment reports a light background (`COLORFGBG`, which ends in the background's number).
pub fn light_background(variable: impl Fn(&str) -> Option<String>) -> bool {
    let number = variable("COLORFGBG").and_then(|value| value.rsplit(';').next()?.parse::<u8>().ok());
    matches!(number, Some(7 | 9..=15))
}

/// Levels of one channel in the 6x6x6 cube of the 256 colours.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn cube_index(r: u8, g: u8, b: u8) -> u8 {
    let level = |value: u8| -> u8 {
        let index = (0..6u8).min_by_key(|&i| CUBE[usize::from(i)].abs_diff(value));
        index.unwrap_or(0)
    };
    let (lr, lg, lb) = (level(r), level(g), level(b));
    let cube = [CUBE[usize::from(lr)], CUBE[usize::from(lg)], CUBE[usize::from(lb)]];
    // The 24 greys are 8, 18, ... 238.
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let step = u8::try_from((mean.saturating_sub(3) / 10).min(23)).unwrap_or(23);
    let grey = 8 + 10 * step;
    if distance([r, g, b], [grey; 3]) < distance([r, g, b], cube) { 232 + step } else { 16 + 36 * lr + 6 * lg + lb }
}

fn nearest_ansi(r: u8, g: u8, b: u8) -> Color {
    // xterm's values of the 16 colours.
    const ANSI: [(Color, [u8; 3]); 16] = [
        (Color::Black, [0, 0, 0]),
        (Color::Red, [205, 0, 0]),
        (Color::Green, [0, 205, 0]),
        (Color::Yellow, [205, 205, 0]),
        (Color::Blue, [0, 0, 238]),
        (Color::Magenta, [205, 0, 205]),
        (Color::Cyan, [0, 205, 205]),
        (Color::Gray, [229, 229, 229]),
        (Color::DarkGray, [127, 127, 127]),
        (Color::LightRed, [255, 0, 0]),
        (Color::LightGreen, [0, 255, 0]),
        (Color::LightYellow, [255, 255, 0]),
        (Color::LightBlue, [92, 92, 255]),
        (Color::LightMagenta, [255, 0, 255]),
        (Color::LightCyan, [0, 255, 255]),
        (Color::White, [255, 255, 255]),
    ];
    ANSI.iter().min_by_key(|(_, rgb)| distance([r, g, b], *rgb)).map_or(Color::Reset, |(color, _)| *color)
}

fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

/// True while we own the terminal; restoring twice must do nothing.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal while we own it. Dropping it restores the terminal; so do a panic and [`Screen::suspend`].
pub struct Screen {
    /// Never dropped: that would show the cursor, like [`restore`], but panic if the terminal is gone.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// True while we also capture the mouse.
    mouse: bool,
}

impl Screen {
    /// Takes over the terminal: raw mode, the alternate screen, bracketed paste, the mouse, no cursor.
    ///
    /// # Errors
    /// Standard output is not a terminal, or cannot be written.
    pub fn take() -> io::Result<Self> {
        // A panic first restores the terminal and is then reported by the previous hook, so its text is visible.
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                report(info);
            }));
        });
        enter(true)?;
        match Terminal::new(CrosstermBackend::new(io::stdout())) {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal), mouse: true }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws one frame; the terminal shows it atomically if supported.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub fn draw(&mut self, render: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        crossterm::queue!(io::stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(render).map(|_| ());
        crossterm::execute!(io::stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Discards the known screen content, so that the next frame is drawn in full.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: that asks the terminal for its cursor and fails if no answer comes in time, as over
        // a slow line.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Restores the terminal and suspends this process until it is continued; then takes the terminal over again.
    ///
    /// # Errors
    /// The terminal cannot be taken again.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        #[cfg(unix)]
        {
            // STOP rather than TSTP, which we may handle ourselves. Only this process: the run must continue
            // undisturbed.
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        }
        enter(self.mouse)?;
        self.clear()
    }

    /// Captures the mouse, or leaves it to the terminal for selecting text.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub fn take_mouse(&mut self, ours: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.mouse, ours) == ours {
            return Ok(());
        }
        if ours { crossterm::execute!(io::stdout(), TakeMouse) } else { crossterm::execute!(io::stdout(), LeaveMouse) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Sends text to the terminal's clipboard (OSC 52), which is the user's local one even over ssh. Terminals do not
/// answer, and some refuse.
///
/// # Errors
/// The terminal cannot be written.
pub fn copy(text: &str) -> io::Result<()> {
    crossterm::execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

/// Makes the terminal report buttons and the wheel, but not every movement as crossterm would: too much for a slow
/// line.
struct TakeMouse;

impl Command for TakeMouse {
    fn write_ansi(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        f.write_str("\x1b[?1000h\x1b[?1006h")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        crossterm::event::EnableMouseCapture.execute_winapi()
    }
}

/// Stops mouse reporting.
struct LeaveMouse;

impl Command for LeaveMouse {
    fn write_ansi(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        f.write_str("\x1b[?1006l\x1b[?1000l")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        crossterm::event::DisableMouseCapture.execute_winapi()
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    let taken = crossterm::execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
        .and_then(|()| if mouse { crossterm::execute!(io::stdout(), TakeMouse) } else { Ok(()) });
    if taken.is_err() {
        restore();
    }
    taken
}

/// Restores the terminal. Errors are ignored: there is nowhere left to report them.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        // Cleared first: tmux 3.3 keeps the alternate screen's rows if the window grew meanwhile.
        let _ = crossterm::execute!(out, LeaveMouse);
        let _ = crossterm::execute!(out, EndSynchronizedUpdate, Clear(ClearType::All), DisableBracketedPaste);
        let _ = crossterm::execute!(out, LeaveAlternateScreen, Show);
        let _ = out.flush();
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(choice: ColorChoice, variables: &[(&str, &str)]) -> ColorDepth {
        ColorDepth::detect(choice, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides() {
        let auto = ColorChoice::Auto;
        assert_eq!(detect(auto, &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), ColorDepth::Rgb);
        assert_eq!(detect(auto, &[("TERM", "xterm-256color")]), ColorDepth::Indexed);
        assert_eq!(detect(auto, &[("TERM", "linux")]), ColorDepth::Ansi16);
        assert_eq!(detect(auto, &[("TERM", "dumb"), ("COLORTERM", "truecolor")]), ColorDepth::None);
        assert_eq!(detect(auto, &[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), ColorDepth::None);
        assert_eq!(detect(auto, &[("NO_COLOR", ""), ("COLORTERM", "24bit")]), ColorDepth::Rgb);
        assert_eq!(detect(ColorChoice::Rgb, &[("NO_COLOR", "1")]), ColorDepth::Rgb);
        assert_eq!(detect(ColorChoice::Never, &[("COLORTERM", "truecolor")]), ColorDepth::None);
    }

    #[test]
    fn colours_are_reduced_to_near_ones() {
        assert_eq!(ColorDepth::Indexed.reduce(Color::Rgb(255, 0, 0)), Some(Color::Indexed(196)));
        assert_eq!(ColorDepth::Indexed.reduce(Color::Rgb(128, 128, 128)), Some(Color::Indexed(244)));
        assert_eq!(ColorDepth::Ansi16.reduce(Color::Rgb(250, 5, 5)), Some(Color::LightRed));
        assert_eq!(ColorDepth::None.reduce(Color::Red), None);
        assert_eq!(ColorDepth::Ansi16.reduce(Color::Reset), Some(Color::Reset));
    }

    #[test]
    fn light_backgrounds_are_known() {
        assert!(light_background(|_| Some("0;15".to_owned())));
        assert!(!light_background(|_| Some("15;0".to_owned())));
        assert!(!light_background(|_| None));
    }
}
