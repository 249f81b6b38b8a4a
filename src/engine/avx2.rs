//! Detection of AVX2 and of features that all processors with AVX2 have.

/// Proof that the features of [`Self::detect`] are available.
///
/// Invariant: only created by [`Self::detect`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let there = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        #[cfg(not(target_arch = "x86_64"))]
        let there = false;
        there.then_some(Self(()))
    }
}
