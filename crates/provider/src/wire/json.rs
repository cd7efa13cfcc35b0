//! Settings ↔ `google.protobuf.Struct`.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use crate::request::Settings;

pub(super) fn to_struct(settings: Settings) -> Struct {
    Struct { fields: settings.into_iter().map(|(key, value)| (key, to_value(value))).collect() }
}

fn to_value(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match value {
        Json::Null => Kind::NullValue(0),
        Json::Bool(flag) => Kind::BoolValue(flag),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(items) => {
            Kind::ListValue(ListValue { values: items.into_iter().map(to_value).collect() })
        }
        Json::Object(fields) => Kind::StructValue(to_struct(fields)),
    };
    Value { kind: Some(kind) }
}

pub(super) fn from_struct(settings: Option<Struct>) -> Settings {
    let fields = settings.unwrap_or_default().fields;
    fields.into_iter().map(|(key, value)| (key, from_value(value))).collect()
}

fn from_value(value: Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(flag)) => Json::Bool(flag),
        Some(Kind::NumberValue(number)) => from_number(number),
        Some(Kind::StringValue(text)) => Json::String(text),
        Some(Kind::ListValue(list)) => Json::Array(list.values.into_iter().map(from_value).collect()),
        Some(Kind::StructValue(fields)) => Json::Object(from_struct(Some(fields))),
    }
}

/// The wire has only doubles; whole ones become integers again, so that a plugin may read a port as a number.
fn from_number(number: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and exact")]
        let whole = number as i64;
        return whole.into();
    }
    serde_json::Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_wire() {
        let json = serde_json::json!({
            "subnetId": "subnet-0abc", "ids": ["a", "b"], "port": 7443, "ratio": 0.5, "on": true, "none": null,
            "nested": {"a": {"b": []}},
        });
        let serde_json::Value::Object(settings) = json else { unreachable!() };
        assert_eq!(from_struct(Some(to_struct(settings.clone()))), settings);
    }
}
