//! The wheels whose checksums qnnscope carries: their contents were inspected, and the tests run on them.
//!
//! The sums are those of the package index. `python3 -m pip install --dry-run --no-deps --report - --only-binary :all:
//! --target DIR --platform PLATFORM --python-version PYTHON onnxruntime-qnn==VERSION` shows each one.

use super::Package;

/// A wheel with a known checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// Its package.
    pub package: Package,
    /// Version of the wheel.
    pub version: &'static str,
    /// Its platform tag.
    pub platform: &'static str,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: &'static str,
}

const X86_64: &str = "manylinux_2_35_x86_64";
const AARCH64: &str = "manylinux_2_34_aarch64";

const fn pin(version: &'static str, platform: &'static str, sha256: &'static str) -> Pin {
    Pin { package: Package::Qnn, version, platform, sha256 }
}

const ONNX_X86_64: &str = "manylinux_2_27_x86_64.manylinux_2_28_x86_64";
const ONNX_AARCH64: &str = "manylinux_2_27_aarch64.manylinux_2_28_aarch64";

const fn onnx(platform: &'static str, sha256: &'static str) -> Pin {
    Pin { package: Package::OnnxRuntime, version: "1.24.4", platform, sha256 }
}

/// Each group: for CPython 3.11, 3.12, 3.13, 3.14. The libraries inside are the same.
const PINS: [Pin; 24] = [
    pin("2.3.0", X86_64, "087bb672ca0cabd3c7fed07084478fe78658cfa09fae1cb013099d7b2289dc72"),
    pin("2.3.0", X86_64, "5d3dec6c8065eebe80efb3775b8e5270c56a937c3e611642a8b4ef7f46bb5660"),
    pin("2.3.0", X86_64, "0520607ca6fe2fb555775a023afa91cd038997fa3a38051e4f4c3021f5140d83"),
    pin("2.3.0", X86_64, "c71235cc4c4c51d281bdc7c954565fb11c369d65c088f3db0e4d76d7d15d767f"),
    pin("2.3.0", AARCH64, "b8e345e2f587485bc689f75b359cb71968cd73d63c81ae94e214950bb233238d"),
    pin("2.3.0", AARCH64, "1f0c072e1b0243f4ee5fabb9732323b20ecd6dd3af8b2fee8dbdacbd8eaf616d"),
    pin("2.3.0", AARCH64, "382e31b7991a7a1003be636a0a97e888d3b95ffadef2162bdece74b5106f0aef"),
    pin("2.3.0", AARCH64, "4d5218944be062694e7a8d96c534ce72a116930a815f0aeb9f75cfd6545de683"),
    pin("2.7.0", X86_64, "c56c01562b8534fe8980cfea4601408d950c065f8251fb862ce82101c52c9849"),
    pin("2.7.0", X86_64, "6feb735e2910127febd9c24c1be0f541bcaf688a90028b7efe55d12aca214c13"),
    pin("2.7.0", X86_64, "1cdbc216f3cd9c24036ab376aef5367bafc88c041305c661967ccc9a96f7400e"),
    pin("2.7.0", X86_64, "bed42d6af493d371b866b2478dc6f8fa7d2f5c9b5cef4aa1752ec1943afd01e2"),
    pin("2.7.0", AARCH64, "ad08bbfebd7c07ffe83995418303215f46cb25a89e12676f47ee20c32002eaad"),
    pin("2.7.0", AARCH64, "40f6f8ab76a877b36c875122caf46189f810e52a1e7c2f75e431dfb7714168b8"),
    pin("2.7.0", AARCH64, "75f9d65ddad44ac07bf51d99e8be1288be43ccf004cfb75b236b987e993d2f27"),
    pin("2.7.0", AARCH64, "581684af135300fc04c19243b8d80b0f6b2e577a89b38acec996e4cb14874555"),
    onnx(ONNX_X86_64, "e54ad52e61d2d4618dcff8fa1480ac66b24ee2eab73331322db1049f11ccf330"),
    onnx(ONNX_X86_64, "0d640eb9f3782689b55cfa715094474cd5662f2f137be6a6f847a594b6e9705c"),
    onnx(ONNX_X86_64, "e30c972bc02e072911aabb6891453ec73795386c0af2b761b65444b8a4c4745f"),
    onnx(ONNX_X86_64, "14ed1f197fab812b695a5eaddb536c635e58a2fbbe50a517c78f082cc6ce9177"),
    onnx(ONNX_AARCH64, "046ff290045a387676941a02a8ae5c3ebec6b4f551ae228711968c4a69d8f6b7"),
    onnx(ONNX_AARCH64, "1a5c5a544b22f90859c88617ecb30e161ee3349fcc73878854f43d77f00558b5"),
    onnx(ONNX_AARCH64, "dc4aaed1e5e1aaacf2343c838a30a7c3ade78f13eeb16817411f929d04040a13"),
    onnx(ONNX_AARCH64, "e2b7969e72d8cb53ffc88ab6d49dd5e75c1c663bda7be7eb0ece192f127343d1"),
];

/// The pin matched by a wheel with this name and content. A known file under another name does not count: the name
/// determines the version qnnscope reports.
pub fn pinned(package: Package, version: &str, platform: &str, sha256: &str) -> Option<Pin> {
    of(package).find(|pin| pin.sha256 == sha256 && pin.version == version && pin.platform == platform)
}

/// Whether there are checksums for this version.
pub fn is_pinned_version(package: Package, version: &str) -> bool {
    of(package).any(|pin| pin.version == version)
}

/// The versions with checksums, oldest first.
pub fn pinned_versions(package: Package) -> Vec<&'static str> {
    let mut versions: Vec<&str> = of(package).map(|pin| pin.version).collect();
    versions.dedup();
    versions
}

fn of(package: Package) -> impl Iterator<Item = Pin> {
    PINS.into_iter().filter(move |pin| pin.package == package)
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_WHEEL_VERSION, ONNX_WHEEL_VERSION};
    use super::*;

    #[test]
    fn every_sum_is_one_and_the_default_version_has_some() {
        for (index, pin) in PINS.iter().enumerate() {
            assert!(pin.sha256.len() == 64 && pin.sha256.bytes().all(|b| b"0123456789abcdef".contains(&b)), "{pin:?}");
            assert!(PINS[..index].iter().all(|other| other.sha256 != pin.sha256), "{pin:?} appears twice");
        }
        assert!(is_pinned_version(Package::Qnn, DEFAULT_WHEEL_VERSION));
        assert_eq!(pinned_versions(Package::Qnn), ["2.3.0", "2.7.0"]);
        assert_eq!(pinned_versions(Package::OnnxRuntime), [ONNX_WHEEL_VERSION]);
    }

    #[test]
    fn a_known_file_counts_under_its_own_name_only() {
        let pin = PINS[0];
        assert_eq!(pinned(Package::Qnn, pin.version, pin.platform, pin.sha256), Some(pin));
        assert_eq!(pinned(Package::Qnn, "2.7.0", pin.platform, pin.sha256), None);
        assert_eq!(pinned(Package::Qnn, pin.version, AARCH64, pin.sha256), None);
        assert_eq!(pinned(Package::OnnxRuntime, pin.version, pin.platform, pin.sha256), None);
    }
}
