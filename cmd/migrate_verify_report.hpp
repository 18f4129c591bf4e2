#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "schema/drift_verification.hpp"

namespace mailroom {

struct DriftPaint {
  bool colour = false;
  bool terminal = false;  ///< long definitions are broken into lines of 80 columns
};

/// `matches`, `drifted`, `dirty`, `unrecorded` or `earlier form`: how a schema stands to the migrations.
std::string verification_state(const Verification& verification);

/// What there is to say, for people.
std::string render_verification(const Verification& verification, DriftPaint paint);

/// The same as one object.
nlohmann::ordered_json verification_object(const Verification& verification);

/// `one thing`, `3 things`
std::string things(std::size_t count);

}  // namespace mailroom
