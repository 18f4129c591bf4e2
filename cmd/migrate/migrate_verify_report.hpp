#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cmd/terminal/context.hpp"
#include "schema/drift_verification.hpp"

namespace mailroom {

struct DriftPaint {
  bool colour = false;
  std::size_t width = 0;  ///< of the terminal, to which long definitions are wrapped; 0: not wrapped
};

/// The style for the context's stdout.
DriftPaint paint_for(Context& context);

/// How a schema compares with the migrations: `matches`, `drifted`, `dirty`, `unrecorded` or `earlier form`.
std::string verification_state(const Verification& verification);

/// The differences as text, without headline and advice.
std::string render_differences(const Verification& verification, DriftPaint paint);

/// The whole report as text.
std::string render_verification(const Verification& verification, DriftPaint paint);

/// The whole report as one JSON object.
nlohmann::ordered_json verification_object(const Verification& verification);

/// Writes `object` as one line.
void print_object(const nlohmann::ordered_json& object, Output& output);

/// `one thing differs`, `3 things differ`
std::string differ_text(std::size_t count);

}  // namespace mailroom
