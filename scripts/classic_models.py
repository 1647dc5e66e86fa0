# SPDX-License-Identifier: Apache-2.0
"""classic_models: the table of classic models that artifacts_classic.py makes: name -> function(rng) ->
(ONNX model, inputs).

A row of SKL is an estimator, the data it learns from, and what the converter is told. No files, no
sessions here."""
import pathlib
import tempfile

# ---- data
# ------------------------------------------------------------------------------------------------------------
ROWS, FED = 160, 23  # rows to learn from; rows that become inputs


def data(kind, rng, numpy):
    """(x, y) of a kind: numbers in x unless said; y as classes, strings, targets, or several of them."""
    x = rng.standard_normal((ROWS, 6)).astype(numpy.float32)
    score = x[:, 0] - 2 * x[:, 1] + x[:, 2] * x[:, 3] + 0.3 * rng.standard_normal(ROWS)
    three = numpy.digitize(score, numpy.quantile(score, [0.33, 0.66]))
    words = numpy.array(["ant", "bee", "cat"])
    kinds = {
        "bin": lambda: (x, (score > 0).astype(numpy.int64)),
        "bin_s": lambda: (x, words[(score > 0).astype(int)]),
        "bin_odd": lambda: (x, numpy.array([-3, 7])[(score > 0).astype(int)]),
        "multi": lambda: (x, three),
        "multi_s": lambda: (x, words[three]),
        "multi_odd": lambda: (x, numpy.array([5, 10, -2])[three]),
        "five": lambda: (x, numpy.digitize(score, numpy.quantile(score, [0.2, 0.4, 0.6, 0.8]))),
        "reg": lambda: (x, score.astype(numpy.float32)),
        "reg_pos": lambda: (x, numpy.exp(score / 4).astype(numpy.float32)),
        "reg2": lambda: (x, numpy.stack([score, x[:, 4] + x[:, 5]], 1).astype(numpy.float32)),
        "multi2": lambda: (x, numpy.stack([three, (x[:, 4] > 0).astype(int)], 1)),
        "labels2": lambda: (x, numpy.stack([score > 0, x[:, 4] > 0, x[:, 5] > 0.5], 1).astype(numpy.int64)),
        "none": lambda: (x, None),
        "positive": lambda: (numpy.abs(x) + 0.1, three),
        "counts": lambda: (numpy.floor(numpy.abs(x) * 3).astype(numpy.float32), three),
        "ints": lambda: (numpy.floor(x * 4).astype(numpy.int64), three),
        "missing": lambda: (numpy.where(rng.random(x.shape) < 0.15, numpy.float32("nan"), x), three),
        "missing_bin": lambda: (numpy.where(rng.random(x.shape) < 0.15, numpy.float32("nan"), x),
                                (score > 0).astype(int)),
        "missing_reg": lambda: (numpy.where(rng.random(x.shape) < 0.15, numpy.float32("nan"), x), score),
        "cats_i": lambda: (rng.integers(0, 5, (ROWS, 3)), three),
        "cats_s": lambda: (numpy.array(["red", "green", "blue", "Größe", ""],
                                       dtype=object)[rng.integers(0, 4, (ROWS, 3))], three),
        "cats_s_bin": lambda: (numpy.array(["red", "green", "blue"],
                                           dtype=object)[rng.integers(0, 3, (ROWS, 2))],
                                           (score > 0).astype(int)),
        "labels_s": lambda: (words[three], None),
        "labels_i": lambda: (numpy.array([5, 10, -2])[three], None),
    }
    return kinds[kind]()


TEXT = ["This is the first document.", "This document is the second document.",
        "And this is the third one, isn't it?",
        "Is this the first document?", "A quick brown fox JUMPS over 13 lazy dogs", "",
        "one two  three\tfour five", "the the the",
        "Unknown words only: zebra, quartz", "naïve café déjà-vu"]


# ---- scikit-learn
# ------------------------------------------------------------------------------------------------------------
def skl_rows():
    """(name, estimator, data, keywords of skl()): the estimator as a function, so that a row costs
    nothing until it is made."""
    from sklearn import (calibration, cluster, cross_decomposition, decomposition, discriminant_analysis,
                         ensemble,
                         feature_extraction, feature_selection, gaussian_process, impute, linear_model,
                         mixture,
                         model_selection, multiclass, multioutput, naive_bayes, neighbors, neural_network,
                         pipeline, preprocessing,
                         random_projection, svm, tree)
    lm, en, pp, fs, gk = linear_model, ensemble, preprocessing, feature_selection, gaussian_process.kernels
    made = pipeline.make_pipeline
    rows = []

    def add(name, estimator, kind, **said):
        rows.append((name, estimator, kind, said))

    # linear classifiers: labels as integers, strings, odd integers; every way to hand out probabilities
    add("logistic", lambda: lm.LogisticRegression(), "multi")
    add("logistic-bin", lambda: lm.LogisticRegression(), "bin")
    add("logistic-strings", lambda: lm.LogisticRegression(), "multi_s")
    add("logistic-bin-strings", lambda: lm.LogisticRegression(), "bin_s")
    add("logistic-odd", lambda: lm.LogisticRegression(), "multi_odd")
    add("logistic-nozipmap", lambda: lm.LogisticRegression(), "multi", options={"zipmap": False})
    add("logistic-columns", lambda: lm.LogisticRegression(), "multi", options={"zipmap": "columns"})
    add("logistic-columns-strings", lambda: lm.LogisticRegression(), "multi_s", options={"zipmap": "columns"})
    add("logistic-nocl", lambda: lm.LogisticRegression(), "multi_s", options={"nocl": True, "zipmap": False})
    add("logistic-raw", lambda: lm.LogisticRegression(), "multi",
        options={"raw_scores": True, "zipmap": False})
    add("logistic-bin-raw", lambda: lm.LogisticRegression(), "bin_s",
        options={"raw_scores": True, "zipmap": False})
    add("logistic-class-labels", lambda: lm.LogisticRegression(), "multi_s",
        options={"output_class_labels": True, "zipmap": False})
    add("logistic-f64", lambda: lm.LogisticRegression(), "multi", dtype="f8", options={"zipmap": False})
    add("logistic-ints", lambda: lm.LogisticRegression(), "ints")
    for opset, ml in ((9, 1), (11, 1), (12, 2), (13, 3), (15, 3), (17, 3), (18, 3), (20, 4), (22, 5)):
        add(f"logistic-opset{opset}", lambda: lm.LogisticRegression(), "multi_s",
            opset={"": opset, "ai.onnx.ml": ml})
        add(f"forest-opset{opset}", lambda: en.RandomForestClassifier(7, random_state=1), "multi_s",
            opset={"": opset, "ai.onnx.ml": ml})
    for opset, ml in ((10, 1), (14, 3), (19, 4), (22, 5)):
        add(f"pipeline-opset{opset}",
            lambda: made(impute.SimpleImputer(), pp.StandardScaler(), pp.PolynomialFeatures(2),
                                                   fs.SelectKBest(k=9), neural_network.MLPClassifier((8,),
                                                       max_iter=300, random_state=0)),
            "missing", opset={"": opset, "ai.onnx.ml": ml})
        add(f"knn-opset{opset}", lambda: neighbors.KNeighborsRegressor(4), "reg",
            opset={"": opset, "ai.onnx.ml": ml})
    add("logistic-cv", lambda: lm.LogisticRegressionCV(cv=2, Cs=3), "multi")
    add("ridge-classifier", lambda: lm.RidgeClassifier(), "multi_s")
    add("ridge-classifier-bin", lambda: lm.RidgeClassifier(), "bin")
    add("ridge-classifier-cv", lambda: lm.RidgeClassifierCV(), "multi")
    add("perceptron", lambda: lm.Perceptron(), "multi")
    add("passive-aggressive", lambda: lm.PassiveAggressiveClassifier(random_state=0), "bin")
    add("sgd-hinge", lambda: lm.SGDClassifier(random_state=0), "multi")
    add("sgd-log", lambda: lm.SGDClassifier(loss="log_loss", random_state=0), "multi_s",
        options={"zipmap": False})
    add("sgd-log-bin-raw", lambda: lm.SGDClassifier(loss="log_loss", random_state=0), "bin",
        options={"raw_scores": True, "zipmap": False})
    add("sgd-huber", lambda: lm.SGDClassifier(loss="modified_huber", random_state=0), "multi")
    add("sgd-one-class", lambda: lm.SGDOneClassSVM(random_state=0), "none")
    add("linear-svc", lambda: svm.LinearSVC(), "multi_s")
    add("linear-svc-bin", lambda: svm.LinearSVC(), "bin")
    add("lda", lambda: discriminant_analysis.LinearDiscriminantAnalysis(), "multi_s")
    add("qda", lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(), "multi")

    # linear regressors
    for name in ("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsIC",
                 "Lars", "LarsCV", "ElasticNet",
                 "ElasticNetCV", "OrthogonalMatchingPursuit", "BayesianRidge", "ARDRegression",
                 "HuberRegressor", "TheilSenRegressor",
                 "SGDRegressor", "PassiveAggressiveRegressor", "QuantileRegressor"):
        add(f"linear-{name}", lambda name=name: getattr(lm, name)(), "reg")
    add("linear-f64", lambda: lm.LinearRegression(), "reg", dtype="f8")
    add("linear-ints", lambda: lm.LinearRegression(), "ints")
    add("linear-two-targets", lambda: lm.LinearRegression(), "reg2")
    add("multitask-lasso", lambda: lm.MultiTaskLasso(0.1), "reg2")
    add("multitask-elasticnet", lambda: lm.MultiTaskElasticNet(0.1), "reg2", dtype="f8")
    add("bayesian-ridge-std", lambda: lm.BayesianRidge(), "reg", options={"return_std": True})
    add("poisson", lambda: lm.PoissonRegressor(), "reg_pos")
    add("tweedie", lambda: lm.TweedieRegressor(power=1.5), "reg_pos")
    add("gamma", lambda: lm.GammaRegressor(), "reg_pos")
    add("ransac", lambda: lm.RANSACRegressor(random_state=0), "reg")
    add("linear-svr", lambda: svm.LinearSVR(), "reg")
    add("pls", lambda: cross_decomposition.PLSRegression(2), "reg2")

    # support vectors
    for kernel in ("linear", "rbf", "poly", "sigmoid"):
        add(f"svc-{kernel}", lambda kernel=kernel: svm.SVC(kernel=kernel), "multi")
        add(f"svr-{kernel}", lambda kernel=kernel: svm.SVR(kernel=kernel), "reg")
    add("svc-bin", lambda: svm.SVC(), "bin_s")
    add("svc-probability", lambda: svm.SVC(probability=True, random_state=0), "multi_s")
    add("svc-probability-bin", lambda: svm.SVC(probability=True, random_state=0), "bin",
        options={"zipmap": False})
    add("svc-raw", lambda: svm.SVC(), "five", options={"raw_scores": True, "zipmap": False})
    add("svc-ovr", lambda: svm.SVC(decision_function_shape="ovr"), "five")
    add("svc-ovo", lambda: svm.SVC(decision_function_shape="ovo"), "multi",
        options={"raw_scores": True, "zipmap": False})
    add("nusvc", lambda: svm.NuSVC(nu=0.3, probability=True, random_state=0), "multi")
    add("nusvr", lambda: svm.NuSVR(), "reg")
    add("one-class-svm", lambda: svm.OneClassSVM(), "none")
    add("svc-f64", lambda: svm.SVC(), "multi", dtype="f8", options={"zipmap": False})

    # trees and their ensembles
    add("tree", lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0), "multi_s")
    add("tree-bin", lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=0), "bin")
    add("tree-one-leaf", lambda: tree.DecisionTreeRegressor(max_leaf_nodes=None, min_samples_leaf=100,
                                                            random_state=0), "reg")
    add("tree-path", lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=0), "multi",
        options={"decision_path": True, "zipmap": False})
    add("tree-leaf", lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=0), "multi",
        options={"decision_leaf": True, "zipmap": False})
    add("tree-multi-output", lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=0), "labels2",
        options={"zipmap": False})
    add("tree-regressor", lambda: tree.DecisionTreeRegressor(max_depth=6, random_state=0), "reg")
    add("tree-regressor-two", lambda: tree.DecisionTreeRegressor(max_depth=6, random_state=0), "reg2")
    add("tree-regressor-path", lambda: tree.DecisionTreeRegressor(max_depth=4, random_state=0), "reg",
        options={"decision_path": True, "decision_leaf": True})
    add("extra-tree", lambda: tree.ExtraTreeClassifier(max_depth=5, random_state=0), "multi")
    add("extra-tree-regressor", lambda: tree.ExtraTreeRegressor(max_depth=5, random_state=0), "reg")
    add("tree-missing", lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0), "missing")
    add("forest", lambda: en.RandomForestClassifier(20, random_state=0), "multi")
    add("forest-bin", lambda: en.RandomForestClassifier(20, random_state=0), "bin_s")
    add("forest-odd", lambda: en.RandomForestClassifier(20, random_state=0), "bin_odd")
    add("forest-path", lambda: en.RandomForestClassifier(5, max_depth=3, random_state=0), "multi",
        options={"decision_path": True, "zipmap": False})
    add("forest-leaf", lambda: en.RandomForestRegressor(5, max_depth=3, random_state=0), "reg",
        options={"decision_leaf": True})
    add("forest-multi-output", lambda: en.RandomForestClassifier(8, max_depth=4, random_state=0), "multi2",
        options={"zipmap": False})
    add("forest-f64", lambda: en.RandomForestClassifier(20, random_state=0), "multi", dtype="f8",
        options={"zipmap": False})
    add("forest-ints", lambda: en.RandomForestClassifier(10, random_state=0), "ints")
    add("forest-regressor", lambda: en.RandomForestRegressor(20, random_state=0), "reg")
    add("forest-regressor-two", lambda: en.RandomForestRegressor(10, random_state=0), "reg2")
    add("extra-trees", lambda: en.ExtraTreesClassifier(20, random_state=0), "multi_s")
    add("extra-trees-regressor", lambda: en.ExtraTreesRegressor(20, random_state=0), "reg")
    add("gradient-boosting", lambda: en.GradientBoostingClassifier(n_estimators=15, random_state=0), "multi")
    add("gradient-boosting-bin", lambda: en.GradientBoostingClassifier(n_estimators=15, random_state=0),
        "bin_s")
    add("gradient-boosting-raw", lambda: en.GradientBoostingClassifier(n_estimators=15, random_state=0),
        "multi",
        options={"raw_scores": True, "zipmap": False})
    add("gradient-boosting-bin-raw", lambda: en.GradientBoostingClassifier(n_estimators=15, random_state=0),
        "bin",
        options={"raw_scores": True, "zipmap": False})
    add("gradient-boosting-zero",
        lambda: en.GradientBoostingClassifier(n_estimators=9, init="zero", random_state=0), "bin")
    add("gradient-boosting-regressor", lambda: en.GradientBoostingRegressor(n_estimators=15, random_state=0),
        "reg")
    add("hist-boosting", lambda: en.HistGradientBoostingClassifier(max_iter=12, random_state=0), "missing")
    add("hist-boosting-bin", lambda: en.HistGradientBoostingClassifier(max_iter=12, random_state=0),
        "missing_bin", options={"zipmap": False})
    add("hist-boosting-raw", lambda: en.HistGradientBoostingClassifier(max_iter=12, random_state=0),
        "missing",
        options={"raw_scores": True, "zipmap": False})
    add("hist-boosting-regressor", lambda: en.HistGradientBoostingRegressor(max_iter=12, random_state=0),
        "missing_reg")
    add("adaboost", lambda: en.AdaBoostClassifier(n_estimators=6, random_state=0), "multi")
    add("adaboost-regressor", lambda: en.AdaBoostRegressor(n_estimators=6, random_state=0), "reg")
    add("bagging", lambda: en.BaggingClassifier(n_estimators=5, random_state=0), "multi_s")
    add("bagging-logistic", lambda: en.BaggingClassifier(lm.LogisticRegression(), n_estimators=4,
                                                         max_features=4, random_state=0), "multi")
    add("bagging-regressor", lambda: en.BaggingRegressor(n_estimators=5, random_state=0), "reg")
    add("isolation-forest", lambda: en.IsolationForest(n_estimators=10, random_state=0), "none",
        opset={"": 17, "ai.onnx.ml": 3})
    add("isolation-forest-samples", lambda: en.IsolationForest(n_estimators=10, random_state=0), "none",
        options={"score_samples": True},
        opset={"": 17, "ai.onnx.ml": 3})

    # many models as one
    voters = [("a", lm.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4, random_state=0)),
              ("c", naive_bayes.GaussianNB())]
    guessers = [("a", lm.LinearRegression()), ("b", tree.DecisionTreeRegressor(max_depth=4, random_state=0))]
    add("voting-soft", lambda: en.VotingClassifier(voters, voting="soft", flatten_transform=False), "multi_s")
    add("voting-hard", lambda: en.VotingClassifier(voters, voting="hard", flatten_transform=False), "multi",
        options={"zipmap": False})
    add("voting-regressor", lambda: en.VotingRegressor(guessers), "reg")
    add("stacking", lambda: en.StackingClassifier(voters, cv=2), "multi_s")
    add("stacking-passthrough", lambda: en.StackingClassifier(voters, cv=2, passthrough=True), "bin")
    add("stacking-regressor", lambda: en.StackingRegressor(guessers, cv=2), "reg")
    add("one-vs-rest", lambda: multiclass.OneVsRestClassifier(lm.LogisticRegression()), "multi_s")
    add("one-vs-rest-trees", lambda: multiclass.OneVsRestClassifier(
        en.RandomForestClassifier(5, random_state=0)), "multi")
    add("one-vs-rest-multilabel", lambda: multiclass.OneVsRestClassifier(lm.LogisticRegression()), "labels2",
        options={"zipmap": False})
    add("one-vs-one", lambda: multiclass.OneVsOneClassifier(svm.LinearSVC()), "multi",
        options={"zipmap": False})
    add("multi-output-classifier", lambda: multioutput.MultiOutputClassifier(lm.LogisticRegression()),
        "multi2", options={"zipmap": False})
    add("multi-output-regressor", lambda: multioutput.MultiOutputRegressor(lm.Ridge()), "reg2")
    add("calibrated-sigmoid", lambda: calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2), "multi_s")
    add("calibrated-isotonic", lambda: calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), cv=2,
        method="isotonic"), "multi")
    add("calibrated-bin", lambda: calibration.CalibratedClassifierCV(
        en.RandomForestClassifier(5, random_state=0), cv=2), "bin")
    add("grid-search", lambda: model_selection.GridSearchCV(lm.LogisticRegression(), {"C": [0.1, 1]}, cv=2),
        "multi")
    add("tuned-threshold", lambda: model_selection.TunedThresholdClassifierCV(lm.LogisticRegression(), cv=2),
        "bin")

    # bayes, neighbours, processes, networks, mixtures, clusters
    add("gaussian-nb", lambda: naive_bayes.GaussianNB(), "multi_s")
    add("bernoulli-nb", lambda: naive_bayes.BernoulliNB(), "multi")
    add("multinomial-nb", lambda: naive_bayes.MultinomialNB(), "counts")
    add("complement-nb", lambda: naive_bayes.ComplementNB(), "counts")
    add("categorical-nb", lambda: naive_bayes.CategoricalNB(min_categories=5), "cats_i")
    for metric in ("minkowski", "manhattan", "cosine"):
        add(f"knn-{metric}", lambda metric=metric: neighbors.KNeighborsClassifier(5, metric=metric),
            "multi_s", options={"zipmap": False})
    add("knn-zipmap", lambda: neighbors.KNeighborsClassifier(3), "multi")
    add("knn-weights", lambda: neighbors.KNeighborsClassifier(5, weights="distance"), "bin",
        options={"zipmap": False})
    add("knn-cdist", lambda: neighbors.KNeighborsClassifier(5), "multi",
        options={"optim": "cdist", "zipmap": False})
    add("knn-regressor", lambda: neighbors.KNeighborsRegressor(5, weights="distance"), "reg")
    add("knn-regressor-cdist", lambda: neighbors.KNeighborsRegressor(5), "reg2", options={"optim": "cdist"})
    add("knn-regressor-f64", lambda: neighbors.KNeighborsRegressor(5), "reg", dtype="f8")
    add("radius", lambda: neighbors.RadiusNeighborsClassifier(40.0, outlier_label=0), "multi",
        options={"zipmap": False})
    add("radius-regressor", lambda: neighbors.RadiusNeighborsRegressor(40.0), "reg")
    add("radius-regressor-cdist", lambda: neighbors.RadiusNeighborsRegressor(40.0), "reg",
        options={"optim": "cdist"})
    add("nearest", lambda: neighbors.NearestNeighbors(n_neighbors=4, radius=None), "none")
    add("knn-transformer", lambda: neighbors.KNeighborsTransformer(n_neighbors=4), "none")
    add("nca", lambda: neighbors.NeighborhoodComponentsAnalysis(3, max_iter=5, random_state=0), "multi")
    add("lof", lambda: neighbors.LocalOutlierFactor(8, novelty=True), "none")
    add("lof-samples", lambda: neighbors.LocalOutlierFactor(8, novelty=True), "none",
        options={"score_samples": True})
    kernels = {"rbf": lambda: gk.RBF(), "matern": lambda: gk.Matern(nu=1.5),
               "quadratic": lambda: gk.RationalQuadratic(), "dot": lambda: gk.DotProduct(),
"sum": lambda: gk.ConstantKernel(2.0) * gk.RBF() + gk.WhiteKernel(0.1)}
    for name, kernel in kernels.items():
        add(f"process-{name}", lambda kernel=kernel: gaussian_process.GaussianProcessRegressor(kernel(),
            alpha=0.1, optimizer=None), "reg", dtype="f8")
    add("process-f32", lambda: gaussian_process.GaussianProcessRegressor(gk.RBF(2.0), alpha=1.0,
        optimizer=None), "reg")
    add("process-std", lambda: gaussian_process.GaussianProcessRegressor(gk.RBF(2.0), alpha=0.5,
        optimizer=None), "reg", dtype="f8",
        options={"return_std": True})
    add("process-cdist", lambda: gaussian_process.GaussianProcessRegressor(gk.RBF(2.0), alpha=0.5,
        optimizer=None), "reg", dtype="f8",
        options={"optim": "cdist"})
    add("mlp", lambda: neural_network.MLPClassifier((12, 8), max_iter=200, random_state=0), "multi_s")
    add("mlp-bin", lambda: neural_network.MLPClassifier((12,), activation="tanh", max_iter=200,
                                                        random_state=0), "bin")
    add("mlp-multilabel", lambda: neural_network.MLPClassifier((12,), activation="logistic", max_iter=200,
                                                               random_state=0), "labels2",
        options={"zipmap": False})
    add("mlp-regressor", lambda: neural_network.MLPRegressor(hidden_layer_sizes=(12,), max_iter=200,
                                                             random_state=0), "reg")
    add("mlp-regressor-f64", lambda: neural_network.MLPRegressor(hidden_layer_sizes=(12,),
                                                                 activation="identity", max_iter=200,
                                                                 random_state=0), "reg2", dtype="f8")
    for covariance_type in ("full", "tied", "diag", "spherical"):
        add(f"mixture-{covariance_type}",
            lambda c=covariance_type: mixture.GaussianMixture(3, covariance_type=c, random_state=0), "none")
    add("mixture-samples", lambda: mixture.GaussianMixture(3, random_state=0), "none",
        options={"score_samples": True})
    add("mixture-bayesian", lambda: mixture.BayesianGaussianMixture(n_components=3, random_state=0), "none")
    add("kmeans", lambda: cluster.KMeans(4, n_init=2, random_state=0), "none")
    add("kmeans-nogemm", lambda: cluster.KMeans(4, n_init=2, random_state=0), "none", options={"gemm": False})
    add("kmeans-f64", lambda: cluster.KMeans(4, n_init=2, random_state=0), "none", dtype="f8")
    add("kmeans-batches", lambda: cluster.MiniBatchKMeans(4, n_init=2, random_state=0), "none")

    # decompositions
    add("pca", lambda: decomposition.PCA(3), "none")
    add("pca-whiten", lambda: decomposition.PCA(3, whiten=True), "none", dtype="f8")
    add("pca-incremental", lambda: decomposition.IncrementalPCA(3), "none")
    add("svd", lambda: decomposition.TruncatedSVD(3, random_state=0), "none")
    for kernel in ("linear", "rbf", "poly", "sigmoid", "cosine"):
        add(f"kernel-pca-{kernel}", lambda kernel=kernel: decomposition.KernelPCA(3, kernel=kernel), "none")
    add("kernel-pca-cdist", lambda: decomposition.KernelPCA(3, kernel="rbf"), "none",
        options={"optim": "cdist"})
    add("random-projection", lambda: random_projection.GaussianRandomProjection(3, random_state=0), "none")

    # columns
    add("standard-scaler", lambda: pp.StandardScaler(), "none")
    add("standard-scaler-ints", lambda: pp.StandardScaler(), "ints")
    add("standard-scaler-f64", lambda: pp.StandardScaler(with_mean=False), "none", dtype="f8")
    add("minmax-scaler", lambda: pp.MinMaxScaler(clip=True), "none")
    add("maxabs-scaler", lambda: pp.MaxAbsScaler(), "none")
    add("robust-scaler", lambda: pp.RobustScaler(), "none")
    for norm in ("l1", "l2", "max"):
        add(f"normalizer-{norm}", lambda norm=norm: pp.Normalizer(norm), "none")
    add("normalizer-f64", lambda: pp.Normalizer(), "none", dtype="f8")
    add("binarizer", lambda: pp.Binarizer(threshold=0.2), "none")
    add("power-yeo", lambda: pp.PowerTransformer(), "none")
    add("power-box", lambda: pp.PowerTransformer("box-cox", standardize=False), "positive")
    add("quantile", lambda: pp.QuantileTransformer(n_quantiles=20), "none")
    add("quantile-f64", lambda: pp.QuantileTransformer(n_quantiles=20), "none", dtype="f8")
    add("polynomial", lambda: pp.PolynomialFeatures(3), "none")
    add("polynomial-interaction", lambda: pp.PolynomialFeatures(2, interaction_only=True, include_bias=False),
        "ints")
    for encode in ("onehot-dense", "ordinal"):
        add(f"bins-{encode}", lambda encode=encode: pp.KBinsDiscretizer(4, encode=encode,
            strategy="quantile"), "none")
    add("kernel-centerer", lambda: pp.KernelCenterer(), "square")
    add("function", lambda: pp.FunctionTransformer(), "none")
    add("tfidf-transformer", lambda: feature_extraction.text.TfidfTransformer(sublinear_tf=True), "counts")
    for strategy in ("mean", "median", "most_frequent", "constant"):
        add(f"imputer-{strategy}", lambda strategy=strategy: impute.SimpleImputer(strategy=strategy),
            "missing")
    add("imputer-strings", lambda: impute.SimpleImputer(missing_values="", strategy="most_frequent"),
        "cats_s")
    add("imputer-knn", lambda: impute.KNNImputer(n_neighbors=3), "missing")
    add("onehot-strings", lambda: pp.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), "cats_s")
    add("onehot-ints", lambda: pp.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), "cats_i")
    add("onehot-drop", lambda: pp.OneHotEncoder(sparse_output=False, drop="first"), "cats_i")
    add("ordinal-strings", lambda: pp.OrdinalEncoder(), "cats_s")
    add("ordinal-ints", lambda: pp.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        "cats_i")
    add("target-encoder-strings", lambda: pp.TargetEncoder(cv=2, random_state=0), "cats_s_bin")
    add("target-encoder-regression", lambda: pp.TargetEncoder(cv=2, random_state=0, target_type="continuous"),
        "cats_i")
    add("label-encoder-strings", lambda: pp.LabelEncoder(), "labels_s")
    add("label-encoder-ints", lambda: pp.LabelEncoder(), "labels_i")
    add("label-binarizer", lambda: pp.LabelBinarizer(), "labels_i")
    add("label-binarizer-strings", lambda: pp.LabelBinarizer(), "labels_s")

    # selection
    add("variance", lambda: fs.VarianceThreshold(0.9), "none")
    add("variance-ints", lambda: fs.VarianceThreshold(0.9), "ints")
    add("select-k", lambda: fs.SelectKBest(k=3), "multi")
    add("select-percentile", lambda: fs.SelectPercentile(percentile=50), "multi")
    add("select-fdr", lambda: fs.SelectFdr(alpha=0.2), "multi")
    add("select-fpr", lambda: fs.SelectFpr(alpha=0.2), "multi")
    add("select-fwe", lambda: fs.SelectFwe(alpha=0.2), "multi")
    add("select-generic", lambda: fs.GenericUnivariateSelect(mode="k_best", param=2), "multi")
    add("select-from-model", lambda: fs.SelectFromModel(tree.DecisionTreeClassifier(random_state=0)), "multi")
    add("rfe", lambda: fs.RFE(lm.LogisticRegression(), n_features_to_select=3), "multi")
    add("rfecv", lambda: fs.RFECV(lm.LogisticRegression(), cv=2), "multi")

    # pipelines
    add("pipeline-scale-logistic", lambda: made(pp.StandardScaler(), lm.LogisticRegression()), "multi_s")
    add("pipeline-pca-svc", lambda: made(pp.StandardScaler(), decomposition.PCA(3),
                                         svm.SVC(probability=True, random_state=0)), "bin_s")
    add("pipeline-union", lambda: made(
        pipeline.make_union(decomposition.PCA(2), fs.SelectKBest(k=2), pp.Normalizer()), lm.Ridge()), "reg")
    add("pipeline-union-weights",
        lambda: pipeline.FeatureUnion([("a", decomposition.PCA(2)), ("b", pp.MinMaxScaler())],
                                                                transformer_weights={"a": 2.0, "b": 0.5}),
                                                                "none")
    add("pipeline-onehot-trees", lambda: made(pp.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                                              en.GradientBoostingClassifier(n_estimators=6, random_state=0)),
                                              "cats_s")
    add("pipeline-imputer-forest",
        lambda: made(impute.SimpleImputer(add_indicator=False), en.RandomForestRegressor(9, random_state=0)),
        "missing_reg")
    add("pipeline-bins-bayes", lambda: made(pp.KBinsDiscretizer(4, encode="onehot-dense"),
                                            naive_bayes.BernoulliNB()), "multi")
    return rows


def integers_for_bools():
    """skl2onnx hands a bool to an attribute of integers, which newer versions of onnx refuse."""
    from skl2onnx.common import tree_ensemble
    add = tree_ensemble.add_node
    if add.__name__ != "add_integers":
        def add_integers(*args, nodes_missing_value_tracks_true=0, **named):
            return add(*args, nodes_missing_value_tracks_true=int(nodes_missing_value_tracks_true), **named)
        tree_ensemble.add_node = add_integers


def skl(rng, estimator, kind, dtype="f4", opset=None, options=None):
    """One row of the table: learn, convert."""
    import numpy
    from skl2onnx import to_onnx
    integers_for_bools()
    if kind == "square":
        x = rng.standard_normal((ROWS, 4))
        x, y = (x @ x.T).astype(numpy.float32), None
    else:
        x, y = data(kind, rng, numpy)
    if x.dtype.kind == "f":
        x = x.astype(dtype)
    model = estimator()
    model.fit(x, y) if y is not None else model.fit(x)
    fed = x[:FED].copy()
    if kind in ("cats_s", "cats_i") and getattr(model, "handle_unknown", "error") != "error":
        fed[0, 0] = "violet" if kind == "cats_s" else 77
    example = fed[:1] if fed.ndim > 1 else fed.reshape(-1, 1)[:1]
    onx = to_onnx(model, example, target_opset=opset, options={id(model): options} if options else None)
    return onx, fed if fed.ndim > 1 else fed.reshape(-1, 1)


def text_rows():
    """Text, mixed columns: models whose inputs are named or are strings."""
    import numpy
    from sklearn import (compose, ensemble, feature_extraction, impute, linear_model, naive_bayes, pipeline,
                         preprocessing)
    from skl2onnx import to_onnx, convert_sklearn
    from skl2onnx.common.data_types import (DictionaryType, FloatTensorType, Int64TensorType,
                                            StringTensorType, DoubleTensorType)
    ft = feature_extraction.text
    rows = {}

    def text(name, make, opset=None, options=None, fed=None, shape=(None, 1)):
        def do(rng):
            model = make()
            y = numpy.arange(len(TEXT)) % 2
            model.fit(TEXT, y)
            reader = model.steps[0][1] if hasattr(model, "steps") else model
            onx = convert_sklearn(model, "m", [("text", StringTensorType(list(shape)))], target_opset=opset,
                                  options={id(reader): {"locale": "C", **(options or {})}})
            words = numpy.array(fed or TEXT, dtype=object)
            return onx, words.reshape(-1, 1) if len(shape) == 2 else words
        rows[name] = do

    text("count", lambda: ft.CountVectorizer())
    text("count-binary", lambda: ft.CountVectorizer(binary=True))
    text("count-ngrams", lambda: ft.CountVectorizer(ngram_range=(1, 2)))
    text("count-chars", lambda: ft.CountVectorizer(analyzer="char", ngram_range=(1, 2)))
    text("count-stopwords", lambda: ft.CountVectorizer(stop_words=["the", "is"]), fed=TEXT[:5])
    text("count-case", lambda: ft.CountVectorizer(lowercase=False))
    text("count-pattern", lambda: ft.CountVectorizer(token_pattern="[a-z]+"))
    text("count-vocabulary", lambda: ft.CountVectorizer(vocabulary=["first", "second", "document"]))
    text("count-separators", lambda: ft.CountVectorizer(),
         options={"separators": [" ", "[.]", "\\?", ",", ";", ":"]}, fed=TEXT[:5])
    text("count-tokenexp", lambda: ft.CountVectorizer(), options={"tokenexp": "[a-zA-Z0-9_]+"})
    text("count-vector", lambda: ft.CountVectorizer(), shape=(None,))
    text("tfidf", lambda: ft.TfidfVectorizer())
    text("tfidf-tokenexp", lambda: ft.TfidfVectorizer(), options={"tokenexp": "[a-zA-Z0-9_]+"})
    text("tfidf-ngrams", lambda: ft.TfidfVectorizer(ngram_range=(1, 3), sublinear_tf=True, norm="l1"))
    text("tfidf-nonorm", lambda: ft.TfidfVectorizer(norm=None, smooth_idf=False, use_idf=True))
    text("tfidf-chars", lambda: ft.TfidfVectorizer(analyzer="char"))
    for opset in (10, 13, 18):
        text(f"tfidf-opset{opset}", lambda: ft.TfidfVectorizer(), opset=opset)
    text("tfidf-logistic", lambda: pipeline.make_pipeline(ft.TfidfVectorizer(),
                                                          linear_model.LogisticRegression()))
    text("count-bayes", lambda: pipeline.make_pipeline(ft.CountVectorizer(), naive_bayes.MultinomialNB()))

    def columns(rng, classifier, opset=None, dtype="f4"):
        n = ROWS
        a = rng.standard_normal((n, 3)).astype(dtype)
        b = numpy.array(["red", "green", "blue"], dtype=object)[rng.integers(0, 3, (n, 1))]
        c = rng.integers(0, 4, (n, 1))
        y = (a[:, 0] + (b[:, 0] == "red") + c[:, 0] > 1.5).astype(int)
        parts = [("num", pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler()),
                  [0, 1, 2]),
                 ("str", preprocessing.OneHotEncoder(handle_unknown="ignore"), [3]),
                 ("int", preprocessing.OrdinalEncoder(), [4])]
        model = pipeline.make_pipeline(compose.ColumnTransformer(parts), classifier())
        table = numpy.concatenate([a.astype(object), b, c.astype(object)], 1)
        model.fit(table, y)
        number = DoubleTensorType if dtype == "f8" else FloatTensorType
        types = [("num", number([None, 3])), ("str", StringTensorType([None, 1])),
                 ("int", Int64TensorType([None, 1]))]
        return convert_sklearn(model, "m", types, target_opset=opset), {"num": a[:FED], "str": b[:FED],
            "int": c[:FED]}

    rows["columns-logistic"] = lambda rng: columns(rng, lambda: linear_model.LogisticRegression())
    rows["columns-forest"] = lambda rng: columns(rng,
                                                 lambda: ensemble.RandomForestClassifier(9, random_state=0))
    rows["columns-forest-opset12"] = lambda rng: columns(rng,
                                                         lambda: ensemble.RandomForestClassifier(9,
                                                             random_state=0), opset=12)

    def passthrough(rng):
        x = rng.standard_normal((ROWS, 4)).astype(numpy.float32)
        model = compose.ColumnTransformer([("a", preprocessing.StandardScaler(), [0, 2]), ("b", "drop", [1])],
                                          remainder="passthrough")
        model.fit(x)
        return to_onnx(model, x[:1]), x[:FED]
    rows["columns-passthrough"] = passthrough

    def dicts(rng, key, strings):
        from sklearn.feature_extraction import DictVectorizer
        maps = [{key(k): float(rng.integers(1, 9)) for k in rng.permutation(5)[:3]} for _ in range(6)]
        model = DictVectorizer(sparse=False).fit(maps)
        kind = DictionaryType(StringTensorType([1]) if strings else Int64TensorType([1]),
                              FloatTensorType([1]))
        onx = convert_sklearn(model, "m", [("map", kind)])
        return onx, {"map": maps[0]}
    rows["dict-strings"] = lambda rng: dicts(rng, lambda k: "abcdef"[k], True)

    def hasher(rng):
        from sklearn.feature_extraction import FeatureHasher
        model = FeatureHasher(n_features=8, input_type="string", dtype=numpy.float32)
        x = numpy.array(["ant", "bee", "cat", "Größe", "", "a longer word than the others"],
                        dtype=object)[rng.integers(0, 6, (FED, 3))]
        model.fit(x)
        return to_onnx(model, x[:1]), x
    rows["hasher"] = hasher

    def hasher_columns(rng):
        import pandas
        from sklearn.feature_extraction import FeatureHasher
        x = pandas.DataFrame({"a": ["ant", "bee", "cat"] * 5})
        model = FeatureHasher(n_features=16, input_type="string", alternate_sign=False,
                              dtype=numpy.float32).fit(x.values)
        return to_onnx(model, x.values[:1].astype(object)), x.values.astype(object)
    rows["hasher-nosign"] = hasher_columns
    return rows


# ---- boosters
# ------------------------------------------------------------------------------------------------------------
def booster_rows():
    import numpy
    rows = {}

    def learned(kind, rng, dtype="f4"):
        x, y = data(kind, rng, numpy)
        return x.astype(dtype), y

    def lightgbm(make, kind, opset=15, **said):
        def do(rng):
            from onnxmltools import convert_lightgbm
            from onnxmltools.convert.common.data_types import FloatTensorType
            x, y = learned(kind, rng)
            model = make().fit(x, y)
            return convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, x.shape[1]]))],
                                    target_opset=opset, **said), x[:FED]
        return do

    def xgboost(make, kind, opset=15):
        def do(rng):
            from onnxmltools import convert_xgboost
            from onnxmltools.convert.common.data_types import FloatTensorType
            x, y = learned(kind, rng)
            model = make().fit(x, y)
            return convert_xgboost(model, initial_types=[("x", FloatTensorType([None, x.shape[1]]))],
                                   target_opset=opset), x[:FED]
        return do

    def catboost(make, kind):
        def do(rng):
            import onnx
            x, y = learned(kind, rng)
            model = make()
            model.fit(x, y)
            with tempfile.TemporaryDirectory() as folder:
                path = str(pathlib.Path(folder, "m.onnx"))
                model.save_model(path, format="onnx", export_parameters={"onnx_domain": "ai.catboost"})
                return onnx.load(path), x[:FED]
        return do

    def boosters():
        import catboost as cb
        import lightgbm as lgb
        import xgboost as xgb
        small = {"n_estimators": 12, "num_leaves": 7, "verbose": -1, "random_state": 0,
                 "min_child_samples": 5}
        for name, kind in (("bin", "bin"), ("bin-strings", "bin_s"), ("multi", "multi"),
                           ("multi-strings", "multi_s"), ("missing", "missing"),
                           ("odd", "multi_odd")):
            rows[f"lightgbm-{name}"] = lightgbm(lambda: lgb.LGBMClassifier(**small), kind)
        rows["lightgbm-nozipmap"] = lightgbm(lambda: lgb.LGBMClassifier(**small), "multi", zipmap=False)
        rows["lightgbm-opset9"] = lightgbm(lambda: lgb.LGBMClassifier(**small), "bin", opset=9)
        rows["lightgbm-dart"] = lightgbm(lambda: lgb.LGBMClassifier(boosting_type="dart", **small), "bin")
        rows["lightgbm-forest"] = lightgbm(
            lambda: lgb.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **small),
            "reg")
        for objective in ("regression", "regression_l1", "huber", "poisson", "gamma", "tweedie", "quantile"):
            kind = "reg_pos" if objective in ("poisson", "gamma", "tweedie") else "reg"
            rows[f"lightgbm-{objective}"] = lightgbm(
                lambda objective=objective: lgb.LGBMRegressor(objective=objective, **small), kind)
        rows["lightgbm-regression-missing"] = lightgbm(lambda: lgb.LGBMRegressor(**small), "missing_reg")
        rows["lightgbm-split"] = lightgbm(lambda: lgb.LGBMRegressor(**small), "reg", split=5)

        few = {"n_estimators": 12, "max_depth": 4, "random_state": 0, "n_jobs": 1}
        for name, kind in (("bin", "bin"), ("multi", "multi"), ("missing", "missing"), ("five", "five")):
            rows[f"xgboost-{name}"] = xgboost(lambda: xgb.XGBClassifier(**few), kind)
        rows["xgboost-opset9"] = xgboost(lambda: xgb.XGBClassifier(**few), "multi", opset=9)
        rows["xgboost-base-score"] = xgboost(lambda: xgb.XGBClassifier(base_score=0.3, **few), "bin")
        rows["xgboost-forest"] = xgboost(lambda: xgb.XGBRFClassifier(**few), "bin")
        rows["xgboost-regression"] = xgboost(lambda: xgb.XGBRegressor(**few), "reg")
        rows["xgboost-regression-missing"] = xgboost(lambda: xgb.XGBRegressor(**few), "missing_reg")
        rows["xgboost-poisson"] = xgboost(lambda: xgb.XGBRegressor(objective="count:poisson", **few),
                                          "reg_pos")
        rows["xgboost-gamma"] = xgboost(lambda: xgb.XGBRegressor(objective="reg:gamma", **few), "reg_pos")
        rows["xgboost-logistic"] = xgboost(lambda: xgb.XGBRegressor(objective="reg:logistic", **few), "bin")

        quiet = {"iterations": 12, "depth": 4, "random_seed": 0, "verbose": False,
                 "allow_writing_files": False, "thread_count": 1}
        for name, kind in (("bin", "bin"), ("multi", "multi"), ("multi-strings", "multi_s"),
                           ("bin-strings", "bin_s")):
            rows[f"catboost-{name}"] = catboost(lambda: cb.CatBoostClassifier(**quiet), kind)
        rows["catboost-regression"] = catboost(lambda: cb.CatBoostRegressor(**quiet), "reg")
        rows["catboost-missing"] = catboost(lambda: cb.CatBoostRegressor(**quiet), "missing_reg")
    boosters()

    def onnxmltools_skl(make, kind, options=None):
        def do(rng):
            from onnxmltools import convert_sklearn
            from skl2onnx.common.data_types import FloatTensorType
            x, y = learned(kind, rng)
            model = make().fit(x, y)
            return convert_sklearn(model, initial_types=[("x", FloatTensorType([None, x.shape[1]]))],
                                   target_opset=15), x[:FED]
        return do
    from sklearn import ensemble, linear_model
    rows["onnxmltools-logistic"] = onnxmltools_skl(lambda: linear_model.LogisticRegression(), "multi_s")
    rows["onnxmltools-forest"] = onnxmltools_skl(lambda: ensemble.RandomForestRegressor(9, random_state=0),
                                                 "reg")

    def in_pipeline(make, kind, options=None):
        """A booster inside scikit-learn's pipeline: onnxmltools' converters, registered with skl2onnx."""
        def do(rng):
            from onnxmltools.convert.lightgbm.operator_converters.LightGbm import (
                convert_lightgbm as lightgbm_converter)
            from onnxmltools.convert.xgboost.operator_converters.XGBoost import (
                convert_xgboost as xgboost_converter)
            from skl2onnx import to_onnx, update_registered_converter
            from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes as classes
            from sklearn import pipeline, preprocessing
            import lightgbm as lgb
            import xgboost as xgb
            allowed = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
            update_registered_converter(lgb.LGBMClassifier, "LightGbmLGBMClassifier", classes,
                                        lightgbm_converter, options=allowed)
            update_registered_converter(xgb.XGBClassifier, "XGBoostXGBClassifier", classes, xgboost_converter,
                                        options=allowed)
            x, y = learned(kind, rng)
            model = pipeline.make_pipeline(preprocessing.StandardScaler(), make(lgb, xgb)).fit(x, y)
            return to_onnx(model, x[:1], target_opset={"": 15, "ai.onnx.ml": 3}, options={id(model): options}
                           if options else None), x[:FED]
        return do
    rows["onnxmltools-pipeline-lightgbm"] = in_pipeline(lambda lgb,
                                                        xgb: lgb.LGBMClassifier(n_estimators=9, verbose=-1,
                                                            random_state=0), "bin_s")
    rows["onnxmltools-pipeline-xgboost"] = in_pipeline(lambda lgb,
                                                       xgb: xgb.XGBClassifier(n_estimators=9, n_jobs=1),
                                                       "multi", {"zipmap": False})
    return rows


def table():
    """Every model: name -> function(rng) -> (ONNX model, inputs)."""
    rows = {}
    for name, estimator, kind, said in skl_rows():
        rows[f"skl2onnx-{name}"] = lambda rng, e=estimator, k=kind, s=said: skl(rng, e, k, **s)
    rows.update((f"skl2onnx-{name}", make) for name, make in text_rows().items())
    rows.update(booster_rows())
    return rows
