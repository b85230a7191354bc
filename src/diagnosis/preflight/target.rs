//! Hardware that a model is checked for, by the names that people use for it.

use crate::devices::{Soc, soc_by_part, socs, socs_by_model};
use crate::event::{SocFacts, clean_text};
use serde::Serialize;
use thiserror::Error;

/// The SoC that represents an architecture: the best-known one with fp16.
const STANDS_FOR: [(u32, &str); 7] =
    [(68, "SM8350"), (69, "SM8450"), (73, "SM8550"), (75, "SM8650"), (79, "SM8750"), (81, "SM8850"), (85, "SM8975")];

/// The default SoC: Snapdragon 8 Gen 3.
pub const DEFAULT_SOC: &str = "SM8650";

/// Hardware that a model is checked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name in reports: the part, or QNN's number if no part is known.
    pub label: String,
    /// Hexagon architecture, such as 75.
    pub arch: Option<u32>,
    /// Part number.
    pub part: Option<String>,
    /// The number that QNN options take.
    pub soc_model: Option<u32>,
    /// VTCM, in MiB.
    pub vtcm_mb: Option<u32>,
    /// Whether HTP runs float graphs.
    pub fp16: Option<bool>,
    /// Who chose it.
    pub origin: Origin,
}

/// Why a target is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user named the SoC.
    Soc,
    /// The user named its architecture, which this SoC represents.
    Arch,
    /// A device contains it.
    Device,
    /// Nobody named one.
    Default,
}

/// Hardware that cannot be checked for.
#[derive(Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TargetError {
    #[error(
        "`{0}` is no SoC that is known here; name a part (SM8650), a QNN soc_model number (57) or a product (8 Gen 3)"
    )]
    UnknownSoc(String),
    #[error("`{0}` is no Hexagon architecture with an HTP; known are v68, v69, v73, v75, v79, v81, v85")]
    UnknownArch(String),
    #[error("{part} has no HTP: its DSP is v{arch}, which only QNN's DSP backend uses")]
    NoHtp { part: String, arch: u32 },
    #[error("QNN's number of {0} is not known here; name it by number, as qnn-net-run takes it in soc_id")]
    NoNumber(String),
    #[error("the device {0} does not report its SoC; name it with --soc")]
    UnknownDevice(String),
}

impl Target {
    /// A row of the SoC table.
    fn of(soc: &Soc, origin: Origin) -> Result<Self, TargetError> {
        if let (Some(false), Some(arch)) = (soc.has_htp(), soc.arch) {
            return Err(TargetError::NoHtp { part: soc.part.to_owned(), arch });
        }
        let soc_model = soc.soc_model.ok_or_else(|| TargetError::NoNumber(soc.part.to_owned()))?;
        Ok(Self {
            label: soc.part.to_owned(),
            arch: soc.arch,
            part: Some(soc.part.to_owned()),
            soc_model: Some(soc_model),
            vtcm_mb: soc.vtcm_mb,
            fp16: soc.fp16,
            origin,
        })
    }

    /// The SoC with this part name, product name or QNN number. A number that is not in the table is kept:
    /// the runtime may know it.
    pub fn from_soc(text: &str) -> Result<Self, TargetError> {
        let wanted = text.trim();
        if let Ok(number) = wanted.parse::<u32>() {
            return match socs_by_model(number).next() {
                Some(soc) => Self::of(soc, Origin::Soc),
                None => Ok(Self {
                    label: format!("SoC {number}"),
                    arch: None,
                    part: None,
                    soc_model: Some(number),
                    vtcm_mb: None,
                    fp16: None,
                    origin: Origin::Soc,
                }),
            };
        }
        let product = |soc: &&Soc| {
            soc.name.is_some_and(|name| {
                let bare = name.strip_prefix("Snapdragon ").unwrap_or(name);
                name.eq_ignore_ascii_case(wanted) || bare.eq_ignore_ascii_case(wanted)
            })
        };
        let soc = soc_by_part(wanted).or_else(|| socs().iter().find(product));
        Self::of(soc.ok_or_else(|| TargetError::UnknownSoc(clean_text(wanted)))?, Origin::Soc)
    }

    /// The SoC that represents an architecture, such as `v75`.
    pub fn from_arch(text: &str) -> Result<Self, TargetError> {
        let unknown = || TargetError::UnknownArch(clean_text(text.trim()));
        let number: u32 = text.trim().trim_start_matches(['v', 'V']).parse().map_err(|_| unknown())?;
        let (_, part) = STANDS_FOR.iter().find(|row| row.0 == number).ok_or_else(unknown)?;
        Self::of(soc_by_part(part).ok_or_else(unknown)?, Origin::Arch)
    }

    /// The default target.
    pub fn fallback() -> Result<Self, TargetError> {
        Ok(Self { origin: Origin::Default, ..Self::from_soc(DEFAULT_SOC)? })
    }

    /// The SoC of a device.
    pub fn from_device(id: &str, soc: &SocFacts) -> Result<Self, TargetError> {
        let unknown = || TargetError::UnknownDevice(clean_text(id));
        let known = soc.part.as_deref().and_then(soc_by_part);
        if let Some(row) = known {
            return Self::of(row, Origin::Device);
        }
        let number = soc.soc_model.ok_or_else(unknown)?;
        Ok(Self { origin: Origin::Device, ..Self::from_soc(&number.to_string())? })
    }

    /// The architecture as QNN writes it, such as `v75`.
    pub fn arch_name(&self) -> Option<String> {
        self.arch.map(|arch| format!("v{arch}"))
    }

    /// `SM8650 (v75)`.
    pub fn full_name(&self) -> String {
        self.arch_name().map_or_else(|| self.label.clone(), |arch| format!("{} ({arch})", self.label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_soc_lead_to_it() {
        for name in ["SM8650", "sm8650", " 57 ", "8 Gen 3", "Snapdragon 8 Gen 3", "SM8650-AB"] {
            let target = Target::from_soc(name).unwrap();
            assert_eq!(
                (target.label.as_str(), target.soc_model, target.arch),
                ("SM8650", Some(57), Some(75)),
                "{name}"
            );
        }
        assert_eq!(Target::fallback().unwrap().origin, Origin::Default);
    }

    #[test]
    fn every_architecture_has_a_soc_of_its_own() {
        for (arch, part) in STANDS_FOR {
            let target = Target::from_arch(&format!("v{arch}")).unwrap();
            assert_eq!((target.arch, target.label.as_str()), (Some(arch), part));
            assert_ne!(target.fp16, Some(false), "{part} would refuse float models for all of v{arch}");
        }
    }

    #[test]
    fn what_cannot_be_checked_for_is_told() {
        assert_eq!(Target::from_soc("SM8250"), Err(TargetError::NoHtp { part: "SM8250".into(), arch: 66 }));
        assert_eq!(Target::from_soc("Tensor G3"), Err(TargetError::UnknownSoc("Tensor G3".into())));
        assert_eq!(Target::from_arch("v66"), Err(TargetError::UnknownArch("v66".into())));
        assert_eq!(Target::from_soc("9999").unwrap().label, "SoC 9999");
        let nameless = SocFacts::default();
        assert_eq!(Target::from_device("abc", &nameless), Err(TargetError::UnknownDevice("abc".into())));
        let known = SocFacts { part: Some("SM8550-AC".into()), ..SocFacts::default() };
        assert_eq!(Target::from_device("abc", &known).unwrap().soc_model, Some(43));
    }
}
