# The few commands a person types. The build itself is CMakeLists.txt with the presets of
# CMakePresets.json; every command builds below $(HAFT_BUILD_ROOT).

HAFT_BUILD_ROOT ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
prefix = /usr/local
PREFIX ?= $(prefix)
export HAFT_BUILD_ROOT JOBS

# $(call build,preset): configure and build a preset; its output shows only if it fails.
build = @sh tools/build.sh $(1)

.PHONY: all demo test bench install uninstall dist format clean

all:
	$(call build,release)

demo:
	@sh tools/setup.sh demo
	$(call build,release)
	@sh tools/demo.sh "$(HAFT_BUILD_ROOT)/release"

test:
	@sh tools/setup.sh $(if $(CI),ci,test)
	@sh tools/run-tests.sh

bench:
	@sh tools/setup.sh bench
	$(call build,bench)
	@python3 bench/run.py --build "$(HAFT_BUILD_ROOT)/bench/bench"
	@python3 bench/io/run.py --build "$(HAFT_BUILD_ROOT)/bench/bench"
	@python3 bench/http/run.py --build "$(HAFT_BUILD_ROOT)/bench/bench"
	@if command -v cargo >/dev/null; then python3 rust/bench/run.py --build "$(HAFT_BUILD_ROOT)/bench/bench"; fi

# DESTDIR is honoured, and no package is fetched or installed for the build, as packagers expect.
install:
	@HAFT_BUILD_PROGRESS=1 sh tools/build.sh install
	@cmake --install "$(HAFT_BUILD_ROOT)/install" --prefix "$(if $(filter /%,$(firstword $(PREFIX))),,$(CURDIR)/)$(PREFIX)"

# Removes what the last `make install` of this folder has installed; DESTDIR is honoured.
uninstall:
	@sh tools/uninstall.sh "$(HAFT_BUILD_ROOT)/install/install_manifest.txt"

# The release's archive, from what is committed: it builds and tests itself without git.
dist:
	@sh tools/dist.sh "$(HAFT_BUILD_ROOT)"

format:
	@sh tools/setup.sh format
	@git ls-files -z --cached --others --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp' | \
		xargs -0 -r clang-format -i

clean:
	rm -rf "$(HAFT_BUILD_ROOT)"
