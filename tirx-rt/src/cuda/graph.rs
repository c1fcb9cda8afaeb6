//! CUDA graphs: capture, instantiation, launch, exchange of parameters.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use super::failed;
use crate::{Error, Result};

/// A captured graph. It is instantiated by its first launch, so that one that only gives its parameters to another
/// costs no instantiation.
pub(crate) struct CudaGraph {
    graph: sys::CUgraph,
    context: Arc<CudaContext>,
    /// Graphs are not synchronized by the driver.
    instance: Mutex<Option<Instance>>,
}

struct Instance(sys::CUgraphExec);

// SAFETY: the handles are used by one thread at a time: `graph` after its capture only in `&mut` or under the lock,
// `instance` under its lock.
unsafe impl Send for CudaGraph {}
// SAFETY: as above.
unsafe impl Sync for CudaGraph {}

/// A capture that is going on; dropping it ends it.
pub(crate) struct Capture {
    stream: Arc<CudaStream>,
    ended: bool,
    _guard: RwLockReadGuard<'static, ()>,
}

/// The handles of the streams that are captured.
static CAPTURED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// An error where the stream is that of a capture, on which only the capture queues work.
pub(super) fn not_captured_elsewhere(stream: &CudaStream) -> Result<()> {
    let captured = CAPTURED.lock().unwrap_or_else(PoisonError::into_inner);
    match captured.contains(&(stream.cu_stream() as usize)) {
        true => Err(crate::graph::foreign_stream()),
        false => Ok(()),
    }
}

/// Read-locked by captures, write-locked by what waits for a whole context: the driver invalidates every capture of the
/// context otherwise.
static CAPTURES: RwLock<()> = RwLock::new(());

/// Runs what may wait for a whole context while no other thread captures. In a capture of this thread it runs as it is:
/// the driver reports what it does not permit.
pub(crate) fn while_no_thread_captures<T>(run: impl FnOnce() -> T) -> T {
    let _guard = match crate::graph::recording() {
        true => None,
        false => Some(CAPTURES.write().unwrap_or_else(PoisonError::into_inner)),
    };
    run()
}

impl CudaGraph {
    /// Begins a capture on a new stream.
    pub(crate) fn begin(context: &Arc<CudaContext>) -> Result<Capture> {
        let stream =
            while_no_thread_captures(|| context.new_stream()).map_err(failed("creating a stream"))?;
        let guard = CAPTURES.read().unwrap_or_else(PoisonError::into_inner);
        stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
            .map_err(failed("beginning a capture"))?;
        let mut captured = CAPTURED.lock().unwrap_or_else(PoisonError::into_inner);
        captured.push(stream.cu_stream() as usize);
        drop(captured);
        Ok(Capture {
            stream,
            ended: false,
            _guard: guard,
        })
    }

    pub(crate) fn launch(&self, stream: &CudaStream) -> Result<()> {
        self.context
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        let mut instance = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*instance {
            Some(made) => made.0,
            None => {
                // SAFETY: the graph is whole and the context current.
                let made =
                    unsafe { result::graph::instantiate(self.graph, sys::CUgraphInstantiate_flags(0)) };
                let made = made.map_err(failed("instantiating a graph"))?;
                instance.insert(Instance(made)).0
            }
        };
        // SAFETY: the instance lives in `self`; its owner keeps the memory that it uses, and has ordered the stream.
        unsafe { result::graph::launch(handle, stream.cu_stream()) }.map_err(failed("launching a graph"))
    }

    /// With `TIRX_SYNCHRONOUS` the end of a launch is waited for.
    pub(crate) fn wait_if_synchronous(&self, stream: &CudaStream) -> Result<()> {
        match super::synchronous() {
            true => stream.synchronize().map_err(failed("launching a graph")),
            false => Ok(()),
        }
    }

    pub(crate) fn nodes(&self) -> Result<usize> {
        let _guard = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = 0usize;
        // SAFETY: with no array to fill, the driver writes the number of nodes.
        unsafe { sys::cuGraphGetNodes(self.graph, std::ptr::null_mut(), &mut count) }
            .result()
            .map_err(failed("counting the operations of a graph"))?;
        Ok(count)
    }

    /// `new` with this graph's instance, whose parameters become those of `new`; where the operations differ, `new`
    /// alone.
    pub(crate) fn updated(self, new: CudaGraph) -> Result<CudaGraph> {
        self.context
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        let old = self
            .instance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(old) = old else { return Ok(new) };
        let mut info = sys::CUgraphExecUpdateResultInfo {
            result: sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR,
            errorNode: std::ptr::null_mut(),
            errorFromNode: std::ptr::null_mut(),
        };
        // SAFETY: both are whole and of the current context.
        let status = unsafe { sys::cuGraphExecUpdate_v2(old.0, new.graph, &mut info) };
        match status.result() {
            Ok(()) => *new.instance.lock().unwrap_or_else(PoisonError::into_inner) = Some(old),
            // Other operations: the new graph is instantiated when it is launched.
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE => {}
            Err(error) => return Err(failed("exchanging the parameters of a graph")(error)),
        }
        Ok(new)
    }
}

impl Capture {
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The stream is one like others again.
    fn end(&mut self) {
        self.ended = true;
        let mut captured = CAPTURED.lock().unwrap_or_else(PoisonError::into_inner);
        captured.retain(|handle| *handle != self.stream.cu_stream() as usize);
    }

    pub(crate) fn finish(mut self) -> Result<CudaGraph> {
        let context = self.stream.context().clone();
        context.bind_to_thread().map_err(failed("binding the context"))?;
        // SAFETY: the stream is capturing since `begin`.
        let graph = unsafe { result::stream::end_capture(self.stream.cu_stream()) };
        self.end();
        let graph = graph.map_err(failed("ending a capture"))?;
        if graph.is_null() {
            return Err(Error::Capture {
                message: "the capture recorded nothing".to_string(),
            });
        }
        Ok(CudaGraph {
            graph,
            context,
            instance: Mutex::new(None),
        })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.stream.context().bind_to_thread().is_ok() {
            // SAFETY: the stream is capturing. The graph of an abandoned capture is destroyed unseen.
            unsafe {
                if let Ok(graph) = result::stream::end_capture(self.stream.cu_stream())
                    && !graph.is_null()
                {
                    let _ = result::graph::destroy(graph);
                }
            }
        }
        self.end();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: made by `instantiate`, destroyed once; a launch that is still running keeps what it needs. Errors have
        // nowhere to go.
        let _ = unsafe { result::graph::exec_destroy(self.0) };
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: as for the instance.
            let _ = unsafe { result::graph::destroy(self.graph) };
        }
    }
}
