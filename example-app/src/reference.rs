//! Plain Rust versions of the kernels, written from their definitions and not from their code. Sums are computed in
//! `f64`.

use crate::picture::Picture;

/// Softmax of each row.
pub(crate) fn softmax(x: &[f32], columns: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks(columns) {
        let peak = row.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v as f64));
        let total: f64 = row.iter().map(|v| (*v as f64 - peak).exp()).sum();
        out.extend(row.iter().map(|v| (*v as f64 - peak).exp() / total));
    }
    out
}

/// `x / sqrt(mean(x^2) + eps) * w` for each row.
pub(crate) fn rmsnorm(x: &[f32], w: &[f32], eps: f64) -> Vec<f64> {
    let d = w.len();
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks(d) {
        let mean_square = row.iter().map(|v| (*v as f64).powi(2)).sum::<f64>() / d as f64;
        let factor = 1.0 / (mean_square + eps).sqrt();
        out.extend(row.iter().zip(w).map(|(v, w)| *v as f64 * factor * *w as f64));
    }
    out
}

/// The product of two row-major matrices, `m x k` and `k x n`.
pub(crate) fn matmul(a: &[f32], b: &[f32], k: usize, n: usize) -> Vec<f64> {
    let mut c = vec![0.0; a.len() / k * n];
    for (row_a, row_c) in a.chunks(k).zip(c.chunks_mut(n)) {
        for (value, row_b) in row_a.iter().zip(b.chunks(n)) {
            row_c
                .iter_mut()
                .zip(row_b)
                .for_each(|(c, b)| *c += *value as f64 * *b as f64);
        }
    }
    c
}

/// One row of attention: the values weighted by the softmax of the similarities of query and keys.
pub(crate) fn attention(query: &[f32], keys: &[f32], values: &[f32]) -> Vec<f64> {
    let d = query.len();
    let like = |key: &[f32]| key.iter().zip(query).map(|(k, q)| k * q).sum::<f32>() / (d as f32).sqrt();
    let scores: Vec<f32> = keys.chunks(d).map(like).collect();
    let weights = softmax(&scores, scores.len());
    let mut out = vec![0.0; d];
    for (value, weight) in values.chunks(d).zip(&weights) {
        out.iter_mut()
            .zip(value)
            .for_each(|(o, v)| *o += weight * f64::from(*v));
    }
    out
}

/// How often each byte occurs.
pub(crate) fn histogram(values: &[u8]) -> Vec<i32> {
    let mut counts = vec![0; 256];
    values.iter().for_each(|v| counts[*v as usize] += 1);
    counts
}

/// The region that a Mandelbrot picture shows.
#[derive(Clone, Copy)]
pub(crate) struct MandelbrotView {
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) pixel: f32,
    pub(crate) limit: i32,
}

/// Escape times as grey values: 255 at once, darker later, 0 inside.
pub(crate) fn mandelbrot(width: usize, height: usize, view: MandelbrotView) -> Vec<u8> {
    let escape = |cr: f32, ci: f32| {
        let (mut zr, mut zi) = (0.0f32, 0.0f32);
        (0..view.limit).find(|_| {
            if zr * zr + zi * zi > 4.0 {
                return true;
            }
            (zr, zi) = (zr * zr - zi * zi + cr, 2.0 * zr * zi + ci);
            false
        })
    };
    let mut out = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let steps = escape(
                view.left + x as f32 * view.pixel,
                view.top + y as f32 * view.pixel,
            );
            out.push(steps.map_or(0, |s| (255 - s * 255 / view.limit) as u8));
        }
    }
    out
}

/// A pixel, with coordinates moved into the picture.
fn clamped(picture: &Picture, x: isize, y: isize) -> f64 {
    let x = x.clamp(0, picture.width as isize - 1) as usize;
    let y = y.clamp(0, picture.height as isize - 1) as usize;
    picture.pixels[y * picture.width + x] as f64
}

fn map_pixels(picture: &Picture, f: impl Fn(isize, isize) -> f64) -> Picture {
    let (w, h) = (picture.width as isize, picture.height as isize);
    let pixels = (0..h)
        .flat_map(|y| (0..w).map(move |x| (x, y)))
        .map(|(x, y)| f(x, y) as u8)
        .collect();
    Picture { pixels, ..*picture }
}

/// One direction of a Gaussian blur, rounded to the nearest grey value.
pub(crate) fn blur(picture: &Picture, radius: isize, sigma: f64, vertical: bool) -> Picture {
    let weight = |i: isize| (-((i * i) as f64) / (2.0 * sigma * sigma)).exp();
    let total: f64 = (-radius..=radius).map(weight).sum();
    map_pixels(picture, |x, y| {
        let at = |i| {
            if vertical {
                clamped(picture, x, y + i)
            } else {
                clamped(picture, x + i, y)
            }
        };
        let sum: f64 = (-radius..=radius).map(|i| weight(i) * at(i)).sum();
        (sum / total + 0.5).clamp(0.0, 255.0)
    })
}

/// Length of the Sobel gradient, cut at 255.
pub(crate) fn sobel(picture: &Picture) -> Picture {
    map_pixels(picture, |x, y| {
        let at = |dx, dy| clamped(picture, x + dx, y + dy);
        let side = |d| at(d, -1) + 2.0 * at(d, 0) + at(d, 1);
        let end = |d| at(-1, d) + 2.0 * at(0, d) + at(1, d);
        (side(1) - side(-1)).hypot(end(1) - end(-1)).min(255.0)
    })
}

/// The table that spreads grey values evenly: `255 * (values up to v) / pixels`, rounded half up.
pub(crate) fn equalize_table(counts: &[i32]) -> Vec<u8> {
    let pixels: i64 = counts.iter().map(|c| *c as i64).sum();
    let mut below = 0;
    counts
        .iter()
        .map(|c| {
            below += *c as i64;
            ((below * 255 + pixels / 2) / pixels) as u8
        })
        .collect()
}
