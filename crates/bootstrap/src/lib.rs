//! Renders the Ignition document that turns a machine into a node.
