//! Whether the processor has AVX2 and what all with AVX2 have besides.

/// Proof that the features of [`Self::detect`] are there.
///
/// Invariant: made by [`Self::detect`] alone.
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
