//! The image kernels: test card, equalization, blur, edges.

use tirx_rt::{Stream, Tensor};

use crate::picture::Picture;
use crate::reference::{self, MandelbrotView};
use crate::report::{Report, share_different, time, worst_grey};
use crate::{Error, kernels};

const RADIUS: isize = 3;
const SIGMA: f64 = 1.5;

/// Renders the test card.
pub(crate) fn mandelbrot(stream: &Stream, report: &mut Report) -> Result<Picture, Error> {
    let (width, height) = (500, 375);
    let view = MandelbrotView {
        left: -2.2,
        top: -1.2,
        pixel: 3.2 / width as f32,
        limit: 128,
    };
    let mut image = Tensor::zeros(stream, [height, width])?;
    let spent = time(stream, || {
        kernels::mandelbrot(stream, &mut image, view.left, view.top, view.pixel, view.limit)
    })?;
    let pixels = image.to_vec()?;
    // Escape times near the border of the set depend on the last bit, and a GPU fuses multiply and add: a few pixels
    // may differ.
    let different = share_different(&pixels, &reference::mandelbrot(width, height, view));
    report.add("mandelbrot", spent, different, 0.01);
    Ok(Picture {
        width,
        height,
        pixels,
    })
}

/// Equalizes, blurs and finds edges; checks each step against plain Rust on the step's own input.
pub(crate) fn process(stream: &Stream, report: &mut Report, source: &Picture) -> Result<Picture, Error> {
    let size = [source.height, source.width];
    let count = source.pixels.len();
    let input = Tensor::from_slice(stream, &source.pixels, size)?;

    let mut counts = Tensor::zeros(stream, [256])?;
    let flat = input.reshape([count])?;
    // Counting adds to the output, so it is timed on a tensor of its own.
    let mut scratch = Tensor::zeros(stream, [256])?;
    let spent = time(stream, || kernels::histogram(stream, &flat, &mut scratch))?;
    kernels::histogram(stream, &flat, &mut counts)?;
    let expected = reference::histogram(&source.pixels);
    let wrong = counts
        .to_vec()?
        .iter()
        .zip(&expected)
        .filter(|(a, e)| a != e)
        .count();
    report.add("histogram", spent, wrong as f64, 0.0);

    let mut table = Tensor::zeros(stream, [256])?;
    let spent = time(stream, || {
        kernels::equalize_map(stream, &counts, &mut table, count as i32)
    })?;
    let expected_table = reference::equalize_table(&expected);
    report.add(
        "equalize_map",
        spent,
        worst_grey(&table.to_vec()?, &expected_table),
        0.0,
    );

    let mut equalized = Tensor::zeros(stream, size)?;
    let mut flat_equalized = equalized.reshape_mut([count])?;
    let spent = time(stream, || {
        kernels::apply_map(stream, &flat, &table, &mut flat_equalized)
    })?;
    let expected: Vec<u8> = source
        .pixels
        .iter()
        .map(|p| expected_table[*p as usize])
        .collect();
    report.add(
        "apply_map",
        spent,
        worst_grey(&equalized.to_vec()?, &expected),
        0.0,
    );

    let picture = |pixels| Picture {
        width: source.width,
        height: source.height,
        pixels,
    };
    let mut rows = Tensor::zeros(stream, size)?;
    let spent = time(stream, || {
        kernels::blur_rows::radius3_sigma_1_5_vertical_false(stream, &equalized, &mut rows)
    })?;
    let expected = reference::blur(&picture(equalized.to_vec()?), RADIUS, SIGMA, false);
    // A sum close to a half may be rounded either way.
    report.add(
        "blur_rows",
        spent,
        worst_grey(&rows.to_vec()?, &expected.pixels),
        1.0,
    );

    let mut blurred = Tensor::zeros(stream, size)?;
    let spent = time(stream, || {
        kernels::blur_columns::radius3_sigma_1_5_vertical_true(stream, &rows, &mut blurred)
    })?;
    let blurred_pixels = blurred.to_vec()?;
    let expected = reference::blur(&picture(rows.to_vec()?), RADIUS, SIGMA, true);
    report.add(
        "blur_columns",
        spent,
        worst_grey(&blurred_pixels, &expected.pixels),
        1.0,
    );

    let mut edges = Tensor::zeros(stream, size)?;
    let spent = time(stream, || kernels::sobel(stream, &blurred, &mut edges))?;
    let pixels = edges.to_vec()?;
    // The square root of a sum of squares close to an integer may be truncated either way.
    report.add(
        "sobel",
        spent,
        worst_grey(&pixels, &reference::sobel(&picture(blurred_pixels)).pixels),
        1.0,
    );
    Ok(picture(pixels))
}
