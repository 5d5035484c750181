//! Graphs and sessions: `tensorflow/c/c_api.h`.

use super::eager::Attribute;
use super::{Device, Tensor, TensorFlow, number, start, text};
use core::ptr;
use tf_fs_sys::{TF_Graph, TF_Operation, TF_Output, TF_Session};
use tf_plugin_core::Result;

/// A graph in the making.
#[derive(Debug)]
pub struct Graph<'t> {
    tensorflow: &'t TensorFlow,
    graph: *mut TF_Graph,
    operations: Vec<*mut TF_Operation>,
}

/// An operation of a graph: its number.
#[derive(Clone, Copy, Debug)]
pub struct Operation(usize);

/// A tensor of a graph: the operation that gives it, and which of its tensors it is.
#[derive(Clone, Copy, Debug)]
pub struct Output(pub Operation, pub i32);

/// A graph at work.
#[derive(Debug)]
pub struct Session<'g> {
    graph: &'g Graph<'g>,
    session: *mut TF_Session,
}

// SAFETY: sessions may be used from all threads at a time, and only read their graph, which does not change meanwhile.
unsafe impl Sync for Session<'_> {}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: the graph is this value's, and sessions borrow it.
        unsafe { (self.tensorflow.client.TF_DeleteGraph)(self.graph) };
    }
}

impl TensorFlow {
    /// An empty graph.
    #[must_use]
    pub fn graph(&self) -> Graph<'_> {
        // SAFETY: takes nothing.
        let graph = unsafe { (self.client.TF_NewGraph)() };
        Graph { tensorflow: self, graph, operations: Vec::new() }
    }
}

impl Graph<'_> {
    /// Adds an operation, whose arguments are one tensor each; `lists` says those that are lists of one.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn add(
        &mut self,
        operation: &str,
        inputs: &[Output],
        lists: &[usize],
        attributes: &[(&str, Attribute<'_>)],
        device: Option<&str>,
    ) -> Result<Operation> {
        let (tensorflow, client) = (self.tensorflow, &self.tensorflow.client);
        let kind = text(operation)?;
        let name = text(&format!("{operation}_{}", self.operations.len()))?;
        let device = device.map(text).transpose()?;
        let mut named = Vec::new();
        for (name, attribute) in attributes {
            let tensor = match attribute {
                Attribute::Tensor(tensor) => Some(tensorflow.in_c(tensor)?),
                _ => None,
            };
            named.push((text(name)?, attribute, tensor));
        }
        let mut problem = Ok(());
        // SAFETY: the description is this graph's until it is finished, which happens whatever went wrong; all texts
        // and values are copied.
        let made = unsafe {
            let new = (client.TF_NewOperation)(self.graph, kind.as_ptr(), name.as_ptr());
            if let Some(device) = &device {
                (client.TF_SetDevice)(new, device.as_ptr());
            }
            for (at, input) in inputs.iter().enumerate() {
                let input = self.output(*input);
                if lists.contains(&at) {
                    (client.TF_AddInputList)(new, &raw const input, 1);
                } else {
                    (client.TF_AddInput)(new, input);
                }
            }
            for (name, attribute, tensor) in &named {
                let name = name.as_ptr();
                match **attribute {
                    Attribute::Text(text) => {
                        (client.TF_SetAttrString)(new, name, text.as_ptr().cast(), text.len());
                    }
                    Attribute::Int(value) => (client.TF_SetAttrInt)(new, name, value),
                    Attribute::Bool(value) => (client.TF_SetAttrBool)(new, name, u8::from(value)),
                    Attribute::Type(value) => (client.TF_SetAttrType)(new, name, value),
                    Attribute::Types(all) => {
                        (client.TF_SetAttrTypeList)(new, name, start(all), number(all.len()));
                    }
                    Attribute::Shape(dims) => {
                        (client.TF_SetAttrShape)(new, name, start(dims), number(dims.len()));
                    }
                    Attribute::UnknownShapes(_) => unreachable!("no operation of a graph needs it"),
                    Attribute::Tensor(_) => {
                        let tensor = tensor.as_ref().map_or(ptr::null_mut(), |one| one.tensor);
                        let set = tensorflow
                            .check(|status| (client.TF_SetAttrTensor)(new, name, tensor, status));
                        problem = problem.and(set);
                    }
                }
            }
            tensorflow.check(|status| (client.TF_FinishOperation)(new, status))
        };
        problem?;
        self.operations.push(made?);
        Ok(Operation(self.operations.len() - 1))
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn constant(&mut self, tensor: &Tensor) -> Result<Output> {
        let attributes =
            [("value", Attribute::Tensor(tensor)), ("dtype", Attribute::Type(tensor.data_type))];
        Ok(Output(self.add("Const", &[], &[], &attributes, None)?, 0))
    }

    fn output(&self, output: Output) -> TF_Output {
        TF_Output { oper: self.operations[output.0.0], index: output.1 }
    }

    /// A session of it.
    ///
    /// # Errors
    /// Those of TensorFlow: a device may refuse.
    pub fn session(&self) -> Result<Session<'_>> {
        let client = &self.tensorflow.client;
        // SAFETY: the options are made and deleted here; the session borrows the graph.
        let session = unsafe {
            let options = (client.TF_NewSessionOptions)();
            let session =
                self.tensorflow.check(|status| (client.TF_NewSession)(self.graph, options, status));
            (client.TF_DeleteSessionOptions)(options);
            session?
        };
        Ok(Session { graph: self, session })
    }
}

impl Session<'_> {
    /// Runs what these tensors and operations need.
    ///
    /// # Errors
    /// Those of the operations.
    pub fn run(
        &self,
        feeds: &[(Output, Tensor)],
        fetches: &[Output],
        targets: &[Operation],
    ) -> Result<Vec<Tensor>> {
        let tensorflow = self.graph.tensorflow;
        let inputs: Vec<_> = feeds.iter().map(|(output, _)| self.graph.output(*output)).collect();
        let values: Vec<_> =
            feeds.iter().map(|(_, tensor)| tensorflow.in_c(tensor)).collect::<Result<_>>()?;
        let pointers: Vec<_> = values.iter().map(|value| value.tensor).collect();
        let outputs: Vec<_> = fetches.iter().map(|output| self.graph.output(*output)).collect();
        let targets: Vec<_> =
            targets.iter().map(|target| self.graph.operations[target.0].cast_const()).collect();
        let mut found = vec![ptr::null_mut(); fetches.len()];
        // SAFETY: as many of each as are said, all alive; what comes is the caller's.
        tensorflow.check(|status| unsafe {
            (tensorflow.client.TF_SessionRun)(
                self.session,
                ptr::null(),
                start(&inputs),
                start(&pointers),
                number(inputs.len()),
                start(&outputs),
                found.as_mut_ptr(),
                number(outputs.len()),
                start(&targets),
                number(targets.len()),
                ptr::null_mut(),
                status,
            );
        })?;
        // SAFETY: the session succeeded, so each place holds a tensor that is ours.
        let found: Vec<_> = found.into_iter().map(|one| unsafe { tensorflow.owned(one) }).collect();
        found.iter().map(|tensor| tensorflow.in_rust(tensor)).collect()
    }

    /// Its devices.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let tensorflow = self.graph.tensorflow;
        // SAFETY: a session and a status; the list is the caller's.
        unsafe {
            let list = |status| (tensorflow.client.TF_SessionListDevices)(self.session, status);
            let list = tensorflow.check(list)?;
            tensorflow.listed(list)
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn close(self) -> Result<()> {
        let tensorflow = self.graph.tensorflow;
        // SAFETY: a session and a status; it is freed with the value.
        tensorflow.check(|status| unsafe {
            (tensorflow.client.TF_CloseSession)(self.session, status);
        })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let tensorflow = self.graph.tensorflow;
        // Freed whatever is said.
        // SAFETY: the session is this value's.
        let _ = tensorflow.check(|status| unsafe {
            (tensorflow.client.TF_DeleteSession)(self.session, status);
        });
    }
}
