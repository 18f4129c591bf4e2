// The output of reconcile as text, JSON or metrics, and whether all is explained.
#pragma once

#include <string>

#include "reconcile/reconciliation.hpp"

namespace mailroom::cmd {

struct ReconcileReport {
  const reconcile::Reconciliation& result;
  const reconcile::ConsumerOutput* output = nullptr;  ///< that it was compared with; null for none
};

/// False if a token is missed or unexplained, a message has none, or one in the output of consumers is not
/// genuine.
bool is_explained(const ReconcileReport& report);

std::string render_text(const ReconcileReport& report);
std::string render_json(const ReconcileReport& report);
/// In Prometheus' text format.
std::string render_metrics(const ReconcileReport& report);

}  // namespace mailroom::cmd
