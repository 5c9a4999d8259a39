# .ci/env.sh - sourced by the scripts here, from the repository's root.
# A Node in .venv was put there because the system's is too old, so it comes first.
root=$PWD
[ -d .venv/bin ] && PATH=$root/.venv/bin:$PATH
export PATH
export SHARED_DIR=${SHARED_DIR:-$root/../shared}
jobs=$(nproc)

# Files of the tree that are ours, tracked or about to be, by pattern.
tree_files() {
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
        while IFS= read -r f; do [ -e "$f" ] && printf '%s\n' "$f"; done
}
