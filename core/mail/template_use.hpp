// Warns of templates whose mail would be of no use, such as one without a link.
#pragma once

#include <string>
#include <vector>

#include "mail/builtin_templates.hpp"
#include "mail/mustache_template.hpp"

namespace mailroom {

/// Why a mail with this part would be of no use to its reader: `the subject is empty`, `it has no {{code}},
/// which a recovery asks for`. Found by rendering it, so that partials and sections count as a reader sees
/// them.
std::vector<std::string> uses_missing(const MustacheTemplate& part_template, MailAction action,
                                      MailPart part);

}  // namespace mailroom
