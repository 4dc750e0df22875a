// SPDX-License-Identifier: MIT
//! The same loops by criterion: `cargo bench`. Its series do not take turns, so ratios are those of
//! `cargo run --release`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use haft_bench::{COUNT, ROWS};

fn rows(criterion: &mut Criterion) {
    for (row, loops) in ROWS {
        let mut group = criterion.benchmark_group(row);
        group
            .throughput(Throughput::Elements(COUNT as u64))
            .sample_size(20);
        for (who, run) in loops {
            group.bench_function(*who, |bencher| bencher.iter(|| run(COUNT)));
        }
        group.finish();
    }
}

criterion_group!(benches, rows);
criterion_main!(benches);
