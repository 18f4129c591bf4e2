#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cmd/context.hpp"
#include "schema/drift_verification.hpp"

namespace mailroom {

struct DriftPaint {
  bool colour = false;
  std::size_t width = 0;  ///< of a terminal: long definitions are wrapped
};

/// For the context's stdout.
DriftPaint paint_for(Context& context);

/// `matches`, `drifted`, `dirty`, `unrecorded` or `earlier form`: how a schema stands to the migrations.
std::string verification_state(const Verification& verification);

/// What differs, in lines for people, without a heading and without advice.
std::string render_differences(const Verification& verification, DriftPaint paint);

/// What there is to say, for people.
std::string render_verification(const Verification& verification, DriftPaint paint);

/// The same as one object.
nlohmann::ordered_json verification_object(const Verification& verification);

/// One line.
void print_object(const nlohmann::ordered_json& object, Output& output);

/// `one thing differs`, `3 things differ`
std::string differ_text(std::size_t count);

}  // namespace mailroom
