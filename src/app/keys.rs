//! Keys and their names.

use super::spelling::nearest;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
}

/// Names of non-character keys; the first name of a key is displayed.
const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("shift-tab", KeyCode::BackTab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("pgup", KeyCode::PageUp),
    ("pageup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("pagedown", KeyCode::PageDown),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
];

impl Chord {
    /// The chord of a key event. Shift is already part of characters and of `backtab`, so it is dropped.
    pub fn from_event(event: &KeyEvent) -> Self {
        let code = match event.code {
            KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            code => code,
        };
        Self {
            code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.contains(KeyModifiers::ALT),
        }
    }

    /// The character this types into a text field.
    pub fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt && !c.is_control() => Some(c),
            _ => None,
        }
    }

    /// True if it types a character.
    pub fn is_text(self) -> bool {
        self.text().is_some()
    }
}

impl std::str::FromStr for Chord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut rest, mut ctrl, mut alt) = (text, false, false);
        loop {
            if let Some(tail) = strip(rest, "ctrl-") {
                (rest, ctrl) = (tail, true);
            } else if let Some(tail) = strip(rest, "alt-") {
                (rest, alt) = (tail, true);
            } else {
                break;
            }
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() && c != ' ' => KeyCode::Char(c),
            _ => named(rest).ok_or_else(|| {
                let near = nearest(rest, NAMED.iter().map(|(name, _)| *name));
                let near = near.map_or_else(String::new, |near| format!("; the nearest is `{near}`"));
                format!("there is no key `{text}`{near}")
            })?,
        };
        Ok(Self { code, ctrl, alt })
    }
}

fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    let tail = &text[prefix.len()..];
    (head.eq_ignore_ascii_case(prefix) && !tail.is_empty()).then_some(tail)
}

fn named(name: &str) -> Option<KeyCode> {
    let lower = name.to_ascii_lowercase();
    if let Some(number) = lower.strip_prefix('f').and_then(|digits| digits.parse::<u8>().ok()) {
        return (1..=12).contains(&number).then_some(KeyCode::F(number));
    }
    NAMED.iter().find(|(known, _)| *known == lower).map(|(_, code)| *code)
}

impl std::fmt::Display for Chord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match self.code {
            KeyCode::Char(c) if c != ' ' => write!(f, "{c}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            code => {
                let name = NAMED.iter().find(|(_, known)| *known == code).map_or("?", |(name, _)| *name);
                f.write_str(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["q", "S", "ctrl-c", "alt-x", "enter", "pgup", "f5", "space", "ctrl-alt-z", "?", "backtab", "-"] {
            assert_eq!(text.parse::<Chord>().unwrap().to_string(), text);
        }
        assert_eq!("Shift-Tab".parse::<Chord>().unwrap().to_string(), "backtab");
        assert!("f13".parse::<Chord>().is_err() && "".parse::<Chord>().is_err() && "ctrl-".parse::<Chord>().is_err());
    }

    #[test]
    fn events_match_names() {
        let event = KeyEvent::new(KeyCode::Char('S'), KeyModifiers::SHIFT);
        assert_eq!(Chord::from_event(&event), "S".parse().unwrap());
        let event = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(Chord::from_event(&event), "ctrl-c".parse().unwrap());
        assert!(!Chord::from_event(&event).is_text());
    }
}
