//! The code with NEON and the portable code, for `scripts/arm64 instructions`, which counts their instructions.
//!
//! Not a target of cargo: the script replaces `ROOT` by the folder of the repository, and compiles this file alone, in
//! seconds. It takes in the files of the product that are measured, and has stand-ins for what they import.
//!
//! `list` prints the kinds of work, each with the bytes or cells of a pass; `WORK neon|portable PASSES` does it.

#![expect(dead_code, reason = "of the files that it takes in, it calls a part")]

mod engine {
    #[path = "ROOT/src/engine/simd.rs"]
    pub mod simd;

    pub mod read {
        #[path = "ROOT/src/engine/read/neon.rs"]
        mod neon;
        #[path = "ROOT/src/engine/read/scan.rs"]
        mod scan;

        mod machine {
            pub struct Machine;

            impl Machine {
                pub fn simple_delimiter(&self) -> Option<u8> {
                    Some(b',')
                }

                pub fn newline(&self) -> u8 {
                    b'\n'
                }

                pub fn quote(&self) -> Option<u8> {
                    Some(b'"')
                }

                pub fn crlf(&self) -> bool {
                    true
                }
            }
        }

        use scan::{Block, BlockSink, PortableMasks, Separators, scan_with};

        use super::simd::Simd;

        struct Sum(u64);

        impl BlockSink for Sum {
            #[inline(always)]
            fn block(&mut self, block: Block) -> bool {
                let Block { structural, newlines, doubled, quotes, wide, .. } = block;
                self.0 = self.0.wrapping_add(structural ^ newlines ^ doubled ^ quotes ^ u64::from(wide));
                false
            }
        }

        #[inline(never)]
        pub fn pass(neon: bool, text: &[u8]) -> u64 {
            let simd = neon.then(|| Simd::detect().expect("NEON"));
            let separators = Separators { delimiter: b',', newline: b'\n', quote: Some(b'"'), crlf: true };
            let mut sum = Sum(0);
            let doubt = match simd {
                Some(simd) => scan_with(simd, &separators, text, 0, &mut sum),
                None => scan_with(PortableMasks, &separators, text, 0, &mut sum),
            };
            assert_eq!(doubt, None);
            sum.0
        }
    }

    pub mod cells {
        #[path = "ROOT/src/engine/cells/neon.rs"]
        mod neon;
        #[path = "ROOT/src/engine/cells/simd.rs"]
        mod simd;
        #[path = "ROOT/src/engine/cells/word.rs"]
        mod word;

        mod fault {
            pub struct CellFault;
        }

        mod text {
            #[derive(Debug, Clone, Copy)]
            pub struct Cell<'a> {
                pub text: &'a [u8],
                pub start: usize,
                pub end: usize,
            }

            impl<'a> Cell<'a> {
                pub fn new(text: &'a [u8]) -> Self {
                    Self { text, start: 0, end: text.len() }
                }

                #[inline(always)]
                pub fn bytes(self) -> &'a [u8] {
                    &self.text[self.start..self.end]
                }

                #[inline(always)]
                pub fn len(self) -> usize {
                    self.end - self.start
                }
            }
        }

        mod typed {
            pub trait Parser {}

            pub struct Cells<'a>(&'a ());

            pub struct FixedColumn<P: Parser>(P);

            impl<P: Parser> FixedColumn<P> {
                pub fn append_by(
                    &mut self,
                    _digits: impl super::word::Digits,
                    _cells: &Cells<'_>,
                    _faults: &mut Vec<super::fault::CellFault>,
                ) {
                }
            }
        }

        use text::Cell;
        use word::{CellQuad, Digits, Point, PortableDigits, QUAD_CELL_BYTES_MAX, WholeNumber};

        use super::simd::Simd;

        /// Cells, and their places in a text.
        pub struct Column {
            text: Vec<u8>,
            places: Vec<(usize, usize)>,
            numbers: Vec<[i64; 4]>,
            floats: Vec<[f64; 4]>,
        }

        impl Column {
            pub fn new(cells: &[String]) -> Self {
                let (mut text, mut places) = (vec![b' '; 16], Vec::new());
                for cell in cells {
                    let start = text.len();
                    text.extend(cell.as_bytes());
                    places.push((start, text.len()));
                    text.push(b',');
                }
                let quads = cells.len() / 4;
                Self { text, places, numbers: vec![[0; 4]; quads], floats: vec![[0.0; 4]; quads] }
            }

            #[inline(never)]
            pub fn pass(&mut self, neon: bool, whole: bool) -> u64 {
                match neon.then(|| Simd::detect().expect("NEON")) {
                    Some(simd) => self.read(simd, whole),
                    None => self.read(PortableDigits, whole),
                }
                self.numbers[0][0] as u64 ^ self.floats[0][0].to_bits()
            }

            /// Four at a time where the implementation does so, else one by one, as a column does.
            #[inline(always)]
            fn read(&mut self, digits: impl Digits, whole: bool) {
                let Self { text, places, numbers, floats } = self;
                let length = |(start, end): (usize, usize)| end - start;
                let short = places.iter().all(|place| length(*place) <= QUAD_CELL_BYTES_MAX);
                let quads = places.as_chunks::<4>().0.iter().take_while(|_| short).map(|four| CellQuad {
                    text,
                    ends: four.map(|(_, end)| end),
                    lengths: four.map(length),
                });
                let done = match whole {
                    true => digits.whole_numbers(quads, numbers, Some),
                    false => digits.quotients(quads, b'.', floats, Some),
                };
                let places = places[4 * done..].iter();
                let cells = places.map(|(start, end)| Cell { text, start: *start, end: *end });
                if whole {
                    for (cell, out) in cells.zip(numbers[done..].as_flattened_mut()) {
                        let Some(WholeNumber { negative, digits }) = digits.whole(cell) else { panic!("no number") };
                        *out = if negative { -(digits as i64) } else { digits as i64 };
                    }
                } else {
                    for (cell, out) in cells.zip(floats[done..].as_flattened_mut()) {
                        let Some(Point { negative, digits, places }) = digits.point(cell, b'.') else { panic!("no number") };
                        let value = digits as f64 / POWERS[places as usize];
                        *out = if negative { -value } else { value };
                    }
                }
            }
        }

        const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    }
}

const ROWS: usize = 4_000;

/// Deterministic pseudo-random numbers.
fn random(row: usize) -> u64 {
    let mut value = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The kinds of work, with a row of each.
const WORK: [(&str, fn(usize, u64) -> String); 6] = [
    ("byte of plain records", |row, n| {
        format!("{row},{},{}.{:02},2024-02-{:02},city-{},\n", n % 1000, n % 90, n % 97, 1 + n % 28, n % 40)
    }),
    ("byte of quoted records", |row, n| {
        format!("{row},\"a, b and {}\",\"{}\"\n", n % 999, "x".repeat(n as usize % 40))
    }),
    ("integer of up to 7 digits", |_, n| (n % 10_000_000).to_string()),
    ("integer of 10 to 13 digits", |_, n| (n % 1_000_000_000_000 + 1_000_000_000).to_string()),
    ("float of up to 6 bytes", |_, n| format!("{}.{:02}", n % 1000, n % 97)),
    ("float of 11 to 13 bytes", |_, n| format!("{}.{:04}", n % 10_000_000 + 100_000, n % 9_999)),
];

fn rows(row: fn(usize, u64) -> String) -> Vec<String> {
    (0..ROWS).map(|at| row(at, random(at))).collect()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, path, passes] = &args[..] else {
        for (name, row) in WORK {
            let unit = if name.starts_with("byte") { rows(row).concat().len() } else { ROWS };
            println!("{name}:{unit}");
        }
        return;
    };
    let (_, row) = WORK.iter().find(|(known, _)| known == name).expect("a kind of work");
    let neon = path == "neon";
    let (cells, text) = (rows(*row), rows(*row).concat());
    let mut column = engine::cells::Column::new(&cells);
    for _ in 0..passes.parse().expect("a number of passes") {
        let sum = match name.starts_with("byte") {
            true => engine::read::pass(neon, std::hint::black_box(text.as_bytes())),
            false => std::hint::black_box(&mut column).pass(neon, name.starts_with("integer")),
        };
        std::hint::black_box(sum);
    }
}
