// The examples that the help of a command below another one begins with.

#include "cmd/syntax/subcommand_examples.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace mailroom::cmd {
namespace {

using PathAndExamples = std::pair<std::string_view, const char*>;

constexpr std::array examples_by_path{
    PathAndExamples{"mailroom action create",
                    "  mailroom action create magic_link --path /magic --lifetime 10m\n"
                    "  mailroom action create receipt --template receipt --dry-run\n"},
    PathAndExamples{"mailroom action list",
                    "  mailroom action list\n"
                    "  mailroom action list -o json    for programs\n"},
    PathAndExamples{"mailroom action retire",
                    "  mailroom action retire magic_link --dry-run    what refers to it\n"
                    "  mailroom action retire magic_link --reason 'replaced by codes'\n"},
    PathAndExamples{"mailroom action set",
                    "  mailroom action set magic_link --lifetime 15m\n"
                    "  mailroom action set receipt --producer billing --dry-run\n"},
    PathAndExamples{"mailroom action show",
                    "  mailroom action show message\n"
                    "  mailroom action show recovery -o json\n"},
    PathAndExamples{"mailroom config check",
                    "  mailroom config check\n"
                    "  mailroom config check -c /etc/mailroom/mailroom.yaml\n"},
    PathAndExamples{"mailroom config show",
                    "  mailroom config show\n"
                    "  mailroom config show -o json    with the origin of each value\n"},
    PathAndExamples{"mailroom key create",
                    "  mailroom key create shop --name web\n"
                    "  mailroom key create shop --permission sending_access    may only send\n"},
    PathAndExamples{"mailroom key list",
                    "  mailroom key list\n"
                    "  mailroom key list -o json\n"},
    PathAndExamples{"mailroom key revoke",
                    "  mailroom key revoke re_AbCdE\n"
                    "  mailroom key revoke re_AbCdE --reason 'seen in a log'\n"},
    PathAndExamples{"mailroom message cancel",
                    "  mailroom message cancel 17 18 --reason 'wrong price'\n"
                    "  mailroom message cancel --action newsletter --dry-run    what has left\n"
                    "  mailroom message cancel --role shop --since 1h\n"},
    PathAndExamples{"mailroom message counts",
                    "  mailroom message counts                      today, by role and domain\n"
                    "  mailroom message counts --by action,day --since 7d    what part was rejected\n"},
    PathAndExamples{"mailroom message export",
                    "  mailroom message export ada@example.org --to ada.json\n"
                    "  mailroom message export 'Ada <ada@example.org>' --to /root/ada.json\n"},
    PathAndExamples{"mailroom message forget",
                    "  mailroom message forget ada@example.org --dry-run\n"
                    "  mailroom message forget ada@example.org --reason 'ticket 17'\n"},
    PathAndExamples{"mailroom message list",
                    "  mailroom message list --state deferred,rejected    what did not arrive\n"
                    "  mailroom message list --domain big.example --since 2h\n"
                    "  mailroom message list --queue-id 4Xk2Z1    the relay's id of a mail\n"},
    PathAndExamples{"mailroom message record",
                    "  mailroom message record 17 --to letter.html    a page that prints\n"
                    "  mailroom message record 17 --to letter.json --recipient ada@example.org\n"},
    PathAndExamples{"mailroom message reschedule",
                    "  mailroom message reschedule 17 --send-after 2h\n"
                    "  mailroom message reschedule --action newsletter --send-after 2026-12-01\n"},
    PathAndExamples{"mailroom message roles",
                    "  mailroom message roles --by-hour\n"
                    "  mailroom message roles --limit shop=1000/h\n"},
    PathAndExamples{"mailroom message send",
                    "  mailroom message send --to ada@example.org --subject Hello --text 'It works.'\n"
                    "  mailroom message send --to ada@example.org --template receipt --data '{}'\n"},
    PathAndExamples{"mailroom message show",
                    "  mailroom message show 17\n"
                    "  mailroom message show 17 --rendered > mail.eml    is it what was handed over?\n"
                    "  mailroom message show 17 --raw > mail.eml    the bytes of a raw mail\n"},
    PathAndExamples{"mailroom migrate baseline",
                    "  mailroom migrate baseline 8 --dry-run\n"
                    "  mailroom migrate baseline 8\n"},
    PathAndExamples{"mailroom migrate down",
                    "  mailroom migrate down --dry-run    what it deletes\n"
                    "  mailroom migrate down 2\n"},
    PathAndExamples{"mailroom migrate export",
                    "  mailroom migrate export migrations\n"
                    "  mailroom migrate export /srv/review/mailroom\n"},
    PathAndExamples{"mailroom migrate force",
                    "  mailroom migrate force 7\n"
                    "  mailroom migrate force 7 --reason 'golang-migrate failed'\n"},
    PathAndExamples{"mailroom migrate goto",
                    "  mailroom migrate goto 8\n"
                    "  mailroom migrate goto 7 --dry-run\n"},
    PathAndExamples{"mailroom migrate status",
                    "  mailroom migrate status\n"
                    "  mailroom migrate status --wait 1m    for a start script\n"},
    PathAndExamples{"mailroom migrate up",
                    "  mailroom migrate up --dry-run\n"
                    "  mailroom migrate up --to 7\n"},
    PathAndExamples{"mailroom migrate verify",
                    "  mailroom migrate verify\n"
                    "  mailroom migrate verify -o json\n"},
    PathAndExamples{"mailroom queue apply",
                    "  mailroom queue apply queues.yaml --dry-run    what the file changes\n"
                    "  mailroom queue apply queues.yaml    mailroom queue --help shows such a file\n"},
    PathAndExamples{"mailroom queue create",
                    "  mailroom queue create recovery --action recovery --priority 10 --dry-run\n"
                    "  mailroom queue create slow --action newsletter --rate 14/s\n"},
    PathAndExamples{"mailroom queue drop",
                    "  mailroom queue drop slow --dry-run    what is due in it\n"
                    "  mailroom queue drop slow --reason 'merged'\n"},
    PathAndExamples{"mailroom queue list",
                    "  mailroom queue list\n"
                    "  mailroom queue list -o json\n"},
    PathAndExamples{"mailroom queue pause",
                    "  mailroom queue pause mailroom --reason 'wrong template'\n"
                    "  mailroom queue pause recovery\n"},
    PathAndExamples{"mailroom queue resume",
                    "  mailroom queue resume mailroom\n"
                    "  mailroom queue resume mailroom --reason 'template corrected'\n"},
    PathAndExamples{"mailroom queue set",
                    "  mailroom queue set mailroom --rate 14/s --burst 28\n"
                    "  mailroom queue set mailroom --action activation,recovery --dry-run\n"},
    PathAndExamples{"mailroom queue show",
                    "  mailroom queue show mailroom\n"
                    "  mailroom queue show mailroom -o json\n"},
    PathAndExamples{"mailroom suppression add",
                    "  mailroom suppression add ada@example.org --reason 'ticket 17'\n"
                    "  mailroom suppression add ada@example.org --topic news\n"},
    PathAndExamples{"mailroom suppression export",
                    "  mailroom suppression export > suppressed.jsonl\n"
                    "  mailroom suppression export | wc -l\n"},
    PathAndExamples{"mailroom suppression import",
                    "  mailroom suppression import < list.csv    an address a line\n"
                    "  mailroom suppression import --reason 'from the old sender' < list.csv\n"},
    PathAndExamples{"mailroom suppression list",
                    "  mailroom suppression list\n"
                    "  mailroom suppression list ada@example.org    since when, why and by whom\n"},
    PathAndExamples{"mailroom suppression remove",
                    "  mailroom suppression remove ada@example.org --reason 'she asked'\n"
                    "  mailroom suppression remove ada@example.org --topic news\n"},
    PathAndExamples{"mailroom template check",
                    "  mailroom template check\n"
                    "  mailroom template check receipt --data order.json    also make a mail\n"},
    PathAndExamples{"mailroom template render",
                    "  mailroom template render recovery --message    the whole mail\n"
                    "  mailroom template render receipt --data order.json --html\n"},
    PathAndExamples{"mailroom template serve",
                    "  mailroom template serve\n"
                    "  mailroom template serve --message 17    with a message of the database\n"},
    PathAndExamples{"mailroom topic change",
                    "  mailroom topic change news --title 'Weekly news'\n"
                    "  mailroom topic change news --back    take new messages again\n"},
    PathAndExamples{"mailroom topic create",
                    "  mailroom topic create news --title 'Monthly news' --title-in 'de=Neues'\n"
                    "  mailroom topic create offers --title Offers --profile shop\n"},
    PathAndExamples{"mailroom topic list",
                    "  mailroom topic list\n"
                    "  mailroom topic list -o json\n"},
    PathAndExamples{"mailroom topic retire",
                    "  mailroom topic retire news\n"
                    "  mailroom topic retire news --reason 'no longer written'\n"},
};

}  // namespace

std::string subcommand_examples(std::string_view path) {
  const auto* const found = std::ranges::find(examples_by_path, path, &PathAndExamples::first);
  return found == examples_by_path.end() ? "" : std::string("Examples:\n") + found->second;
}

}  // namespace mailroom::cmd
