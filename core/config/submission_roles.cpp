// How a role of submission.roles changes the section `submission`: its values replace those of the section.

#include <algorithm>

#include "config/key_table.hpp"
#include "config/settings.hpp"

namespace mailroom::config {

SubmissionRole finished_role(SubmissionRole role, const Settings& settings) {
  std::erase_if(role.values, [&](const SettingValue& value) {
    return setting_of(settings, value.key).origin.kind == OriginKind::flag;
  });
  Settings own;
  own.values = settings.values;
  for (const auto& value : role.values)
    *std::ranges::find(own.values, value.key, &SettingValue::key) = value;
  store_values(own);
  role.submission = std::move(own.submission);
  return role;
}

}  // namespace mailroom::config
