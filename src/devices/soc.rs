//! The SoC table: four different numbers identify one chip, and mixing them up is the most common reason why
//! devices and contexts are refused.

use std::sync::LazyLock;

/// One part. Unknown values are `None`, never derived from a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soc {
    /// Part name, such as `SM8650` (`ro.soc.model`).
    pub part: &'static str,
    /// Marketing name, such as `Snapdragon 8 Gen 3`.
    pub name: Option<&'static str>,
    /// Numbers of `/sys/devices/soc0/soc_id`.
    pub soc_ids: Vec<u32>,
    /// The number QNN options expect.
    pub soc_model: Option<u32>,
    /// Hexagon architecture, such as 75; it names the Stub and Skel files.
    pub arch: Option<u32>,
    /// HVX threads that a graph prepared for it uses.
    pub hvx_threads: Option<u32>,
    /// VTCM, MiB.
    pub vtcm_mb: Option<u32>,
    /// Whether float graphs run on HTP.
    pub fp16: Option<bool>,
    /// GPU.
    pub gpu: Option<&'static str>,
}

impl Soc {
    /// The architecture as QNN writes it, such as `v75`.
    pub fn arch_name(&self) -> Option<String> {
        self.arch.map(|arch| format!("v{arch}"))
    }

    /// True if the HTP backend can exist; v66 and older have a different DSP backend.
    pub fn has_htp(&self) -> Option<bool> {
        self.arch.map(|arch| arch >= 68)
    }
}

static TABLE: LazyLock<Vec<Soc>> =
    LazyLock::new(|| include_str!("soc-table.tsv").lines().filter_map(parse_row).collect());

/// All parts.
pub fn socs() -> &'static [Soc] {
    &TABLE
}

/// The part with this name, case-insensitive; `SM8750-AB` and the like are found by the text before the dash.
pub fn soc_by_part(part: &str) -> Option<&'static Soc> {
    let wanted = part.trim();
    let bare = wanted.split('-').next().unwrap_or(wanted);
    let find = |name: &str| TABLE.iter().find(|soc| soc.part.eq_ignore_ascii_case(name));
    find(wanted).or_else(|| find(bare))
}

/// The part with this `/sys/devices/soc0/soc_id`; also `None` if several parts share it.
pub fn soc_by_id(soc_id: u32) -> Option<&'static Soc> {
    let mut found = TABLE.iter().filter(|soc| soc.soc_ids.contains(&soc_id));
    found.next().filter(|_| found.next().is_none())
}

/// The parts with this number in QNN's options.
pub fn socs_by_model(soc_model: u32) -> impl Iterator<Item = &'static Soc> {
    TABLE.iter().filter(move |soc| soc.soc_model == Some(soc_model))
}

fn parse_row(line: &'static str) -> Option<Soc> {
    if line.starts_with('#') || line.starts_with("part\t") {
        return None;
    }
    let columns: Vec<&str> = line.split('\t').collect();
    let [part, name, soc_ids, soc_model, arch, hvx, vtcm, fp16, gpu] = columns.as_slice() else { return None };
    let known = |text: &'static str| Some(text).filter(|text| !matches!(*text, "?" | "-"));
    Some(Soc {
        part,
        name: known(name),
        soc_ids: soc_ids.split(',').filter_map(|id| id.parse().ok()).collect(),
        soc_model: soc_model.parse().ok(),
        arch: arch.strip_prefix('v').and_then(|arch| arch.parse().ok()),
        hvx_threads: hvx.parse().ok(),
        vtcm_mb: vtcm.parse().ok(),
        fp16: match *fp16 {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        },
        gpu: known(gpu),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let rows = include_str!("soc-table.tsv").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(socs().len(), rows - 1);
        for soc in socs() {
            assert!(soc.arch.is_none_or(|arch| (66..100).contains(&arch)), "{soc:?}");
            assert!(soc.part.chars().all(|c| c.is_ascii_alphanumeric()), "{soc:?}");
            assert_eq!(socs().iter().filter(|other| other.part == soc.part).count(), 1, "{soc:?}");
        }
    }

    #[test]
    fn parts_are_found_by_each_of_their_numbers() {
        let soc = soc_by_part("sm8650").unwrap();
        assert_eq!((soc.soc_model, soc.arch, soc.vtcm_mb, soc.fp16), (Some(57), Some(75), Some(8), Some(true)));
        assert_eq!(soc_by_part("SM8750-AC").map(|soc| soc.part), Some("SM8750"));
        assert_eq!(soc_by_id(519).map(|soc| soc.part), Some("SM8550"));
        assert_eq!(soc_by_id(555), None, "two parts share it");
        assert_eq!(soc_by_part("XYZ"), None);
        assert!(socs_by_model(93).any(|soc| soc.part == "QCS6490"));
        assert_eq!(soc_by_part("SM8635").unwrap().fp16, Some(false), "not to be derived from v73");
    }
}
