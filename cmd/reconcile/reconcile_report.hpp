#pragma once

#include <string>

#include "reconcile/reconciliation.hpp"

namespace mailroom {

/// `lists_ids`: all ids that are unexplained; otherwise some of each reason.
std::string render_text(const Reconciliation& result, bool lists_ids);
std::string render_json(const Reconciliation& result, bool lists_ids);

}  // namespace mailroom
