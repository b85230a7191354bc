//! Themes as data: panes ask for a meaning, a theme file defines its look.
//!
//! A theme is TOML: `inherits` names another theme, `[palette]` gives colours a name, `[meanings]` gives a
//! meaning either a colour or `{ fg, bg, bold, dim, italic, underline, reverse }`. A meaning that a theme
//! leaves out takes the look of the meaning it is a special case of (see [`Meaning::fallback`]).

use super::spelling::nearest;
use super::symbols::{ASCII, Symbols, UNICODE};
use super::terminal::ColorDepth;
use crate::files::read_text_at_most;
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// The shipped themes: name and text.
pub const SHIPPED: [(&str, &str); 4] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("ansi", include_str!("../../themes/ansi.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
];

/// Longest chain of `inherits`; a longer one is a cycle.
const MAX_DEPTH: usize = 8;
/// Largest theme file accepted.
const MAX_BYTES: u64 = 1 << 20;

macro_rules! meanings {
    ($($variant:ident $name:literal $fallback:expr, $help:literal;)*) => {
        /// The meaning of a screen element.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Meaning {
            $(#[doc = $help] $variant,)*
        }

        impl Meaning {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name in theme files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The meaning this one is a special case of.
            pub fn fallback(self) -> Option<Self> {
                match self { $(Self::$variant => $fallback,)* }
            }
        }
    };
}

meanings! {
    Text "text" None, "Plain text";
    Muted "muted" Some(Self::Text), "Labels, units, what matters less";
    Title "title" Some(Self::Text), "Titles of panes and columns";
    Border "border" Some(Self::Muted), "Lines around panes";
    BorderFocus "border_focus" Some(Self::Title), "Lines around the pane that has the focus";
    Selection "selection" Some(Self::Title), "The selected row";
    Good "good" Some(Self::Text), "Went well";
    Warn "warn" Some(Self::Title), "Doubtful";
    Alert "alert" Some(Self::Warn), "Failed";
    Accent "accent" Some(Self::Title), "What is going on now";
    Key "key" Some(Self::Accent), "Keys in hints and help";
    Series1 "series_1" Some(Self::Accent), "First line of a chart";
    Series2 "series_2" Some(Self::Series1), "Second line of a chart";
    Series3 "series_3" Some(Self::Series2), "Third line of a chart";
    Series4 "series_4" Some(Self::Series3), "Fourth line of a chart";
    Bar "bar" Some(Self::Series1), "Bars in tables";
    Simulated "simulated" Some(Self::Warn), "The label of simulated figures";
}

/// A theme that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ThemeError {
    #[error("there is no theme `{name}`; known are {known}{hint}")]
    Unknown { name: String, known: String, hint: String },
    #[error("cannot read the theme {path}: {reason}")]
    Io { path: String, reason: String },
    #[error("theme `{name}`, line {line}: {message}")]
    Syntax { name: String, line: usize, message: String },
    #[error("theme `{name}` inherits from itself through {chain}")]
    Circle { name: String, chain: String },
}

/// How everything looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    styles: Vec<Style>,
    /// The characters in use.
    pub symbols: Symbols,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTheme {
    inherits: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    #[serde(default)]
    meanings: BTreeMap<String, RawStyle>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum RawStyle {
    Color(String),
    Full(FullStyle),
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, as the file has them")]
struct FullStyle {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

impl Theme {
    /// Loads a theme by name (a shipped one, or `<name>.toml` in `dir`) for a terminal of this colour depth. Without
    /// colours it is always `mono`, whatever was requested. The second value lists the problems in the files.
    ///
    /// # Errors
    /// The theme, or one it inherits, does not exist, cannot be read or is not a theme.
    pub fn load(
        name: &str,
        depth: ColorDepth,
        ascii: bool,
        dir: Option<&Path>,
    ) -> Result<(Self, Vec<String>), ThemeError> {
        let name = if depth == ColorDepth::None { "mono" } else { name };
        let mut palette = BTreeMap::new();
        let mut raw_styles = BTreeMap::new();
        collect(name, dir, &mut Vec::new(), &mut palette, &mut raw_styles)?;
        let mut warnings = Vec::new();
        for known in raw_styles.keys() {
            if !Meaning::ALL.iter().any(|meaning| meaning.name() == known) {
                let near = nearest(known, Meaning::ALL.iter().map(|meaning| meaning.name()));
                let near = near.map_or_else(String::new, |near| format!("; the nearest is `{near}`"));
                warnings.push(format!("theme `{name}`: there is no meaning `{known}`{near}"));
            }
        }
        let styles = Meaning::ALL
            .iter()
            .map(|meaning| {
                let raw = chain(*meaning).find_map(|meaning| raw_styles.get(meaning.name()));
                raw.map_or_else(Style::default, |raw| resolve(name, raw, &palette, depth, &mut warnings))
            })
            .collect();
        let symbols = if ascii { ASCII } else { UNICODE };
        Ok((Self { styles, symbols }, warnings))
    }

    /// A shipped theme in full colours.
    pub fn shipped(name: &str) -> Option<Self> {
        SHIPPED.iter().find(|(known, _)| *known == name)?;
        Self::load(name, ColorDepth::Rgb, false, None).ok().map(|(theme, _)| theme)
    }

    /// The theme for a terminal of this colour depth if the user names none.
    pub fn default_name(depth: ColorDepth, light_background: bool) -> &'static str {
        match depth {
            ColorDepth::None => "mono",
            ColorDepth::Ansi16 => "ansi",
            _ if light_background => "light",
            _ => "dark",
        }
    }

    /// The look of a meaning.
    pub fn style(&self, meaning: Meaning) -> Style {
        self.styles.get(meaning as usize).copied().unwrap_or_default()
    }
}

fn chain(meaning: Meaning) -> impl Iterator<Item = Meaning> {
    std::iter::successors(Some(meaning), |meaning| meaning.fallback())
}

fn collect(
    name: &str,
    dir: Option<&Path>,
    seen: &mut Vec<String>,
    palette: &mut BTreeMap<String, String>,
    styles: &mut BTreeMap<String, RawStyle>,
) -> Result<(), ThemeError> {
    if seen.iter().any(|known| known == name) || seen.len() >= MAX_DEPTH {
        return Err(ThemeError::Circle { name: name.to_owned(), chain: seen.join(", ") });
    }
    seen.push(name.to_owned());
    let text = read(name, dir)?;
    let raw: RawTheme = toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text[..offset].matches('\n').count() + 1;
        ThemeError::Syntax { name: name.to_owned(), line, message: error.message().to_owned() }
    })?;
    if let Some(parent) = &raw.inherits {
        collect(parent, dir, seen, palette, styles)?;
    }
    palette.extend(raw.palette);
    styles.extend(raw.meanings);
    Ok(())
}

fn read(name: &str, dir: Option<&Path>) -> Result<String, ThemeError> {
    // A user's theme may replace a shipped one of the same name. Names are not paths.
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    if let Some(dir) = dir.filter(|_| plain) {
        let path = dir.join(format!("{name}.toml"));
        match read_text_at_most(&path, MAX_BYTES) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let path = crate::event::clean_text(&path.display().to_string());
                return Err(ThemeError::Io { path, reason: error.to_string() });
            }
        }
    }
    if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    let known: Vec<&str> = SHIPPED.iter().map(|(known, _)| *known).collect();
    let hint = match (nearest(name, known.iter().copied()), dir) {
        (Some(near), _) => format!("; did you mean `{near}`?"),
        (None, Some(dir)) => {
            format!("; your own themes belong into {}", crate::event::clean_text(&dir.display().to_string()))
        }
        (None, None) => String::new(),
    };
    Err(ThemeError::Unknown { name: crate::event::clean_text(name), known: known.join(", "), hint })
}

fn resolve(
    theme: &str,
    raw: &RawStyle,
    palette: &BTreeMap<String, String>,
    depth: ColorDepth,
    warnings: &mut Vec<String>,
) -> Style {
    let full = match raw {
        RawStyle::Color(color) => FullStyle { fg: Some(color.clone()), ..FullStyle::default() },
        RawStyle::Full(full) => full.clone(),
    };
    let mut color = |name: &Option<String>| -> Option<Color> {
        let name = name.as_ref()?;
        let value = palette.get(name).unwrap_or(name);
        let parsed = parse_color(value);
        if parsed.is_none() {
            warnings.push(format!("theme `{theme}`: `{name}` is no colour"));
        }
        parsed.and_then(|color| depth.reduce(color))
    };
    let mut style = Style { fg: color(&full.fg), bg: color(&full.bg), ..Style::default() };
    for (wanted, modifier) in [
        (full.bold, Modifier::BOLD),
        (full.dim, Modifier::DIM),
        (full.italic, Modifier::ITALIC),
        (full.underline, Modifier::UNDERLINED),
        (full.reverse, Modifier::REVERSED),
    ] {
        if wanted {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn parse_color(text: &str) -> Option<Color> {
    if let Some(hex) = text.strip_prefix('#') {
        let valid = hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u32::from_str_radix(hex, 16).ok().filter(|_| valid)?;
        let [_, r, g, b] = value.to_be_bytes();
        return Some(Color::Rgb(r, g, b));
    }
    Some(match text {
        "default" => Color::Reset,
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "gray" => Color::Gray,
        "dark-gray" => Color::DarkGray,
        "light-red" => Color::LightRed,
        "light-green" => Color::LightGreen,
        "light-yellow" => Color::LightYellow,
        "light-blue" => Color::LightBlue,
        "light-magenta" => Color::LightMagenta,
        "light-cyan" => Color::LightCyan,
        "white" => Color::White,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_themes_load_without_warnings_at_every_depth() {
        for (name, _) in SHIPPED {
            for depth in [ColorDepth::None, ColorDepth::Ansi16, ColorDepth::Indexed, ColorDepth::Rgb] {
                let (_, warnings) = Theme::load(name, depth, false, None).unwrap();
                assert!(warnings.is_empty(), "{name}: {warnings:?}");
            }
        }
    }

    #[test]
    fn no_colour_means_none_and_the_selection_still_shows() {
        for (name, _) in SHIPPED {
            let (theme, _) = Theme::load(name, ColorDepth::None, true, None).unwrap();
            for meaning in Meaning::ALL {
                let style = theme.style(*meaning);
                assert!(style.fg.is_none() && style.bg.is_none(), "{name}: {}", meaning.name());
            }
            assert!(theme.style(Meaning::Selection).add_modifier.contains(Modifier::REVERSED));
        }
    }

    #[test]
    fn sixteen_colours_stay_sixteen() {
        for (name, _) in SHIPPED {
            let (theme, _) = Theme::load(name, ColorDepth::Ansi16, false, None).unwrap();
            for meaning in Meaning::ALL {
                let style = theme.style(*meaning);
                for color in [style.fg, style.bg].into_iter().flatten() {
                    assert!(!matches!(color, Color::Rgb(..) | Color::Indexed(_)), "{name}: {}", meaning.name());
                }
            }
        }
    }

    /// WCAG contrast of two colours.
    fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let luminance = |(r, g, b): (u8, u8, u8)| {
            let linear = |c: u8| {
                let c = f64::from(c) / 255.0;
                if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// `dark` is also used if the terminal's background is unknown, so it must be readable on white too.
    #[test]
    fn colours_can_be_read_on_their_backgrounds() {
        for (name, backgrounds) in [
            ("dark", vec![(0, 0, 0), (30, 30, 46), (255, 255, 255)]),
            ("light", vec![(255, 255, 255), (253, 246, 227)]),
        ] {
            let theme = Theme::shipped(name).unwrap();
            for meaning in Meaning::ALL.iter().filter(|meaning| !meaning.name().starts_with("border")) {
                let style = theme.style(*meaning);
                let Some(Color::Rgb(r, g, b)) = style.fg else { continue };
                let own = if let Some(Color::Rgb(r, g, b)) = style.bg { vec![(r, g, b)] } else { backgrounds.clone() };
                for background in own {
                    let contrast = contrast((r, g, b), background);
                    assert!(contrast >= 3.0, "{name}: {} on {background:?} has {contrast:.2}", meaning.name());
                }
            }
        }
    }

    #[test]
    fn unknown_names_are_told() {
        let error = Theme::load("drak", ColorDepth::Rgb, false, None).unwrap_err().to_string();
        assert_eq!(error, "there is no theme `drak`; known are dark, light, ansi, mono; did you mean `dark`?");
        let mut warnings = Vec::new();
        let raw = RawStyle::Color("reed".to_owned());
        resolve("mine", &raw, &BTreeMap::new(), ColorDepth::Rgb, &mut warnings);
        assert_eq!(warnings, ["theme `mine`: `reed` is no colour"]);
    }

    #[test]
    fn missing_meanings_fall_back_along_the_chain() {
        let names: Vec<_> = chain(Meaning::Series4).map(Meaning::name).collect();
        assert_eq!(names, ["series_4", "series_3", "series_2", "series_1", "accent", "title", "text"]);
    }
}
