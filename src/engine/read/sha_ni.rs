//! SHA-256 of two messages in parallel, with the x86-64 instructions for it.
//!
//! Invariant: [`ShaNi::detect`] checks every feature of `#[target_feature]` below.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi64x, _mm_sha256msg1_epu32,
    _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128,
};

pub(super) const BLOCK_BYTES: usize = 64;
pub(super) type HashState = [u32; 8];

/// Proof that the processor has the instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShaNi(());

#[cfg(not(target_arch = "x86_64"))]
impl ShaNi {
    pub fn detect() -> Option<Self> {
        None
    }

    pub fn compress_both(self, _states: [&mut HashState; 2], _blocks: [&[[u8; BLOCK_BYTES]]; 2]) {
        unreachable!("none is detected");
    }
}

#[cfg(target_arch = "x86_64")]
impl ShaNi {
    pub fn detect() -> Option<Self> {
        let there =
            is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1");
        there.then_some(Self(()))
    }

    /// Hashes blocks into two states, as many as both have.
    pub fn compress_both(self, states: [&mut HashState; 2], blocks: [&[[u8; BLOCK_BYTES]]; 2]) {
        // SAFETY: `self` exists, so `detect` found every feature that `compress_both` enables.
        unsafe { compress_both(states, blocks) }
    }
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes, four a step.
#[cfg(target_arch = "x86_64")]
const K: [[u32; 4]; 16] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5],
    [0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5],
    [0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3],
    [0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc],
    [0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da],
    [0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7],
    [0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13],
    [0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85],
    [0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3],
    [0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5],
    [0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3],
    [0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208],
    [0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];

/// A message's state in the form of the instructions, and the words of its schedule.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct MessageLane {
    abef: __m128i,
    cdgh: __m128i,
    words: [__m128i; 4],
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress_both(states: [&mut HashState; 2], [first, second]: [&[[u8; BLOCK_BYTES]]; 2]) {
    let mut lanes = [begin(states[0]), begin(states[1])];
    for (a, b) in first.iter().zip(second) {
        let before = lanes;
        lanes[0].words = load(a);
        lanes[1].words = load(b);
        let [x, y] = &mut lanes;
        steps(x, y, 0);
        for from in [4, 8, 12] {
            schedule_and_steps(x, y, from);
        }
        for (lane, before) in lanes.iter_mut().zip(before) {
            lane.abef = _mm_add_epi32(lane.abef, before.abef);
            lane.cdgh = _mm_add_epi32(lane.cdgh, before.cdgh);
        }
    }
    for (state, lane) in states.into_iter().zip(lanes) {
        end(state, lane);
    }
}

/// Four rounds of each message, with the words at `now`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn step(x: &mut MessageLane, y: &mut MessageLane, now: usize, constants: __m128i) {
    let of_x = _mm_add_epi32(x.words[now], constants);
    let of_y = _mm_add_epi32(y.words[now], constants);
    x.cdgh = _mm_sha256rnds2_epu32(x.cdgh, x.abef, of_x);
    y.cdgh = _mm_sha256rnds2_epu32(y.cdgh, y.abef, of_y);
    x.abef = _mm_sha256rnds2_epu32(x.abef, x.cdgh, _mm_shuffle_epi32::<0x0e>(of_x));
    y.abef = _mm_sha256rnds2_epu32(y.abef, y.cdgh, _mm_shuffle_epi32::<0x0e>(of_y));
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn steps(x: &mut MessageLane, y: &mut MessageLane, from: usize) {
    for now in 0..4 {
        step(x, y, now, constants(from + now));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn schedule(words: &mut [__m128i; 4], now: usize) {
    let [w0, w1, w2, w3] = [0, 1, 2, 3].map(|next| words[(now + next) % 4]);
    let sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8::<4>(w3, w2));
    words[now] = _mm_sha256msg2_epu32(sum, w3);
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn schedule_and_steps(x: &mut MessageLane, y: &mut MessageLane, from: usize) {
    for now in 0..4 {
        schedule(&mut x.words, now);
        schedule(&mut y.words, now);
        step(x, y, now, constants(from + now));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn constants(step: usize) -> __m128i {
    // SAFETY: `K[step]` is 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(K[step].as_ptr().cast()) }
}

/// A block's words, in big-endian order.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load(block: &[u8; BLOCK_BYTES]) -> [__m128i; 4] {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let (parts, _) = block.as_chunks::<16>();
    [0, 1, 2, 3].map(|at| {
        // SAFETY: `parts[at]` is 16 readable bytes; the load needs no alignment.
        let words = unsafe { _mm_loadu_si128(parts[at].as_ptr().cast()) };
        _mm_shuffle_epi8(words, swap)
    })
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn begin(state: &HashState) -> MessageLane {
    let halves = state.as_ptr().cast::<__m128i>();
    // SAFETY: a state is 32 readable bytes, so 16 at its start and 16 at half are; the loads need no alignment.
    let (dcba, hgfe) = unsafe { (_mm_loadu_si128(halves), _mm_loadu_si128(halves.add(1))) };
    let (cdab, efgh) = (_mm_shuffle_epi32::<0xb1>(dcba), _mm_shuffle_epi32::<0x1b>(hgfe));
    let (abef, cdgh) = (_mm_alignr_epi8::<8>(cdab, efgh), _mm_blend_epi16::<0xf0>(efgh, cdab));
    MessageLane { abef, cdgh, words: [abef; 4] }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn end(state: &mut HashState, lane: MessageLane) {
    let (feba, dchg) = (_mm_shuffle_epi32::<0x1b>(lane.abef), _mm_shuffle_epi32::<0xb1>(lane.cdgh));
    let (dcba, hgfe) = (_mm_blend_epi16::<0xf0>(feba, dchg), _mm_alignr_epi8::<8>(dchg, feba));
    let halves = state.as_mut_ptr().cast::<__m128i>();
    // SAFETY: a state is 32 writable bytes, so 16 at its start and 16 at half are; the stores need no alignment.
    unsafe {
        _mm_storeu_si128(halves, dcba);
        _mm_storeu_si128(halves.add(1), hgfe);
    }
}
