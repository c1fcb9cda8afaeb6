//! Grey pictures and PNG files.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use crate::Error;

/// A picture of 8-bit grey values, row by row.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Picture {
    /// Reads a PNG of any colour type; colours become their luma (Rec. 601), transparency is ignored.
    pub(crate) fn read(path: &Path) -> Result<Picture, Error> {
        let name = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let file = File::open(path).map_err(|e| name(&e))?;
        let mut decoder = png::Decoder::new(BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|e| name(&e))?;
        let size = reader
            .output_buffer_size()
            .ok_or_else(|| name(&"the picture is too large"))?;
        let mut data = vec![0; size];
        let info = reader.next_frame(&mut data).map_err(|e| name(&e))?;
        let data = &data[..info.buffer_size()];
        let luma =
            |p: &[u8]| ((p[0] as u32 * 299 + p[1] as u32 * 587 + p[2] as u32 * 114 + 500) / 1000) as u8;
        let pixels = match info.color_type {
            png::ColorType::Grayscale => data.to_vec(),
            png::ColorType::GrayscaleAlpha => data.chunks_exact(2).map(|p| p[0]).collect(),
            png::ColorType::Rgb => data.chunks_exact(3).map(luma).collect(),
            png::ColorType::Rgba => data.chunks_exact(4).map(luma).collect(),
            png::ColorType::Indexed => return Err(name(&"an indexed picture was not expanded").into()),
        };
        Ok(Picture {
            width: info.width as usize,
            height: info.height as usize,
            pixels,
        })
    }

    /// Writes a grey PNG.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut encoder = png::Encoder::new(
            BufWriter::new(file),
            self.width.try_into()?,
            self.height.try_into()?,
        );
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(())
    }
}
