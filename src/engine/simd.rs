//! Detection of the vector instructions that the engine has code for: on x86-64 AVX2 and the features that all
//! processors with AVX2 have, on arm64 NEON, which all of them have.

/// Proof that the features of [`Self::detect`] are available.
///
/// Invariant: only created by [`Self::detect`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Simd(());

impl Simd {
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let there = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        #[cfg(target_arch = "aarch64")]
        let there = cfg!(target_feature = "neon");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let there = false;
        there.then_some(Self(()))
    }
}
